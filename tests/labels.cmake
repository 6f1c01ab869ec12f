# Gives each test its kind as label, and those that measure time or keep every CPU busy the machine for themselves.
get_property(all_tests DIRECTORY PROPERTY TESTS)
foreach(name ${all_tests})
  string(REGEX MATCH "^[a-z0-9]+" kind ${name})
  set_property(TEST ${name} APPEND PROPERTY LABELS ${kind})
  if(kind MATCHES "^(e2e|browser|examples|bench|sanitize)$" OR name MATCHES "^(style.tidy|fuzz.build)$")
    set_property(TEST ${name} PROPERTY RUN_SERIAL TRUE)
  endif()
endforeach()
