# All tests. A name begins with its kind ("unit.", "style.", ...), which becomes its label: ctest -L unit.
# A test that cannot run here exits with 77 and prints why.
set(TESTS_DIR ${CMAKE_CURRENT_LIST_DIR})

# stallgraph_test(NAME TIMEOUT_SECONDS COMMAND...)
function(stallgraph_test name timeout)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${timeout})
endfunction()

# Unit tests: each tests/unit/test_*.c is a program of its own.
find_library(CMOCKA_LIBRARY cmocka REQUIRED)
add_custom_target(unit_tests)
file(GLOB unit_tests CONFIGURE_DEPENDS ${TESTS_DIR}/unit/test_*.c)
foreach(source ${unit_tests})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_compile_options(${name} PRIVATE -Wno-missing-prototypes)
  target_compile_definitions(${name} PRIVATE TEST_SOURCE_DIR="${TESTS_DIR}")
  target_link_libraries(${name} PRIVATE cli ${CMOCKA_LIBRARY})
  add_dependencies(unit_tests ${name})
  stallgraph_test(unit.${name} 120 ${name})
endforeach()

# Each of these folders says itself how it is built and run.
foreach(kind fixtures workloads golden e2e browser bench)
  include(${TESTS_DIR}/${kind}/${kind}.cmake OPTIONAL)
endforeach()
include(${TESTS_DIR}/workloads/unwind.cmake OPTIONAL)

stallgraph_test(style.layers 60 ${TESTS_DIR}/check_layers.py)
stallgraph_test(style.layers_self_test 60 ${TESTS_DIR}/check_layers.py --self-test)
stallgraph_test(style.format 120 ${TESTS_DIR}/check_format.sh)
stallgraph_test(style.text 60 ${TESTS_DIR}/check_text.py)
stallgraph_test(style.text_self_test 60 ${TESTS_DIR}/check_text.py --self-test)
stallgraph_test(style.tidy 900 ${TESTS_DIR}/check_tidy.sh ${CMAKE_BINARY_DIR})

# What needs another compiler or other flags is built in a folder inside this one, so that one ctest run covers it all.
set(NESTED_DIR ${CMAKE_BINARY_DIR}/nested)
stallgraph_test(sanitize.asan 900 ${TESTS_DIR}/nested_build.sh asan ${NESTED_DIR}/asan unit_tests "unit|golden")
stallgraph_test(sanitize.tsan 900 ${TESTS_DIR}/nested_build.sh tsan ${NESTED_DIR}/tsan unit_tests "unit|golden")
stallgraph_test(fuzz.build 900 ${TESTS_DIR}/nested_build.sh fuzz ${NESTED_DIR}/fuzz
                "stallgraph unit_tests fuzz_programs")
set_tests_properties(fuzz.build PROPERTIES FIXTURES_SETUP fuzz_programs)

# Fuzz targets: tests/fuzz/fuzz_NAME.c, with what it starts from in tests/fuzz/seeds/NAME/.
add_custom_target(fuzz_programs)
file(GLOB fuzz_targets CONFIGURE_DEPENDS ${TESTS_DIR}/fuzz/fuzz_*.c)
foreach(source ${fuzz_targets})
  get_filename_component(program ${source} NAME_WE)
  string(REPLACE "fuzz_" "" name ${program})
  if(STALLGRAPH_FUZZ)
    add_executable(${program} ${source})
    target_compile_options(${program} PRIVATE -Wno-missing-prototypes)
    target_link_libraries(${program} PRIVATE cli -fsanitize=fuzzer)
    add_dependencies(fuzz_programs ${program})
  endif()
  stallgraph_test(fuzz.${name} 60 ${TESTS_DIR}/fuzz/run.sh ${NESTED_DIR}/fuzz/${program} ${TESTS_DIR}/fuzz/seeds/${name} 5)
  set_tests_properties(fuzz.${name} PROPERTIES FIXTURES_REQUIRED fuzz_programs)
endforeach()
