# End-to-end tests: each function marked @test in test_*.py is a test, "e2e.NAME". They measure, so they run one at a time.
find_program(E2E_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT E2E_PYTHON)
  message(STATUS "End-to-end tests are left out: /usr/bin/python3 is not there")
  return()
endif()
set(E2E_ENGINES auto trace CACHE STRING "Engines for blocked time: auto runs every end-to-end test, others those that differ")
set(e2e_run ${CMAKE_CURRENT_LIST_DIR}/run.py)
file(GLOB e2e_files CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${e2e_files})
foreach(engine IN LISTS E2E_ENGINES)
  execute_process(
    COMMAND ${E2E_PYTHON} ${e2e_run} --list --engine ${engine}
    OUTPUT_VARIABLE e2e_names
    OUTPUT_STRIP_TRAILING_WHITESPACE
    COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" e2e_names "${e2e_names}")
  set(prefix e2e)
  if(NOT engine STREQUAL "auto")
    set(prefix e2e.${engine})
  endif()
  foreach(name IN LISTS e2e_names)
    add_test(
      NAME ${prefix}.${name}
      COMMAND ${E2E_PYTHON} ${e2e_run} --binary $<TARGET_FILE:stallgraph> --workloads ${WORKLOAD_DIR} --engine ${engine}
              ${name})
    set_tests_properties(${prefix}.${name} PROPERTIES SKIP_RETURN_CODE 77 RUN_SERIAL ON TIMEOUT 180)
  endforeach()
endforeach()
add_test(NAME e2e.self_test COMMAND ${E2E_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/self_test.py)
set_tests_properties(e2e.self_test PROPERTIES TIMEOUT 60)
