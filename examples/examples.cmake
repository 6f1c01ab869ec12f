add_test(NAME examples.largest_waits COMMAND ${PROJECT_SOURCE_DIR}/tests/e2e/test_largest_waits.sh)
set_tests_properties(examples.largest_waits PROPERTIES LABELS examples)

# The example server and its smoke test. It needs libpq, which the profiler itself does not.
pkg_check_modules(PQ libpq)
if(NOT PQ_FOUND)
  message(STATUS "libpq was not found: the example dbserver is left out")
  return()
endif()
find_package(Threads REQUIRED)

file(GLOB dbserver_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/dbserver/*.c)
add_executable(dbserver ${dbserver_sources})
# Built the way a server in production is, whatever the build type: optimised, without frame pointers, with symbols.
# Only calls in tail position stay calls, so that each function has its frame in the stacks that are shown.
target_compile_options(dbserver PRIVATE -O2 -g -fno-optimize-sibling-calls)
target_include_directories(dbserver PRIVATE ${PQ_INCLUDE_DIRS})
target_link_libraries(dbserver PRIVATE ${PQ_LINK_LIBRARIES} Threads::Threads)

add_test(NAME examples.dbserver COMMAND ${PROJECT_SOURCE_DIR}/tests/e2e/test_dbserver.sh $<TARGET_FILE:dbserver>)
set_tests_properties(examples.dbserver PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 120 LABELS examples)
