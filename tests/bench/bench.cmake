# Benchmarks: tests/bench/NAME are commands to run by hand, since what they print is worth something on a quiet machine and
# for minutes only. Here each is run for some seconds, so that it does not rot.
find_program(BENCH_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
set(BENCH_DIR ${CMAKE_BINARY_DIR}/tests/bench)
set(BENCH_SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR})
file(MAKE_DIRECTORY ${BENCH_DIR})
set(bench_programs)

# The workloads, as the end-to-end tests have them: by a command of their own, whatever the build type is.
function(bench_workload name)
  set(output ${BENCH_DIR}/${name})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_C_COMPILER} -std=gnu17 -D_GNU_SOURCE -pthread -Wall -Wextra -Werror -I${PROJECT_SOURCE_DIR} ${ARGN} -o
            ${output} ${BENCH_SOURCE_DIR}/${name}.c
    DEPENDS ${BENCH_SOURCE_DIR}/${name}.c ${BENCH_SOURCE_DIR}/bench.h
    COMMENT "Benchmark workload ${name}"
    VERBATIM)
  set(bench_programs ${bench_programs} ${output} PARENT_SCOPE)
endfunction()

bench_workload(switch_pairs -O1 -fno-omit-frame-pointer)
bench_workload(sleepers -O1 -fno-omit-frame-pointer)
bench_workload(short_waits -O1 -fno-omit-frame-pointer)
bench_workload(frames -O2 -fomit-frame-pointer)
add_custom_target(bench_workloads ALL DEPENDS ${bench_programs})

# Times walks of one stack, ours and libunwind's.
find_library(UNWIND_PTRACE_LIBRARY unwind-ptrace)
if(UNWIND_PTRACE_LIBRARY)
  add_executable(unwind_cost ${BENCH_SOURCE_DIR}/unwind_cost.c)
  set_target_properties(unwind_cost PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${BENCH_DIR})
  target_link_libraries(unwind_cost PRIVATE unwind ${UNWIND_PTRACE_LIBRARY})
endif()

if(BENCH_PYTHON)
  foreach(name IN ITEMS overhead scale unwind stop memory accuracy)
    stallgraph_test(bench.${name}_smoke 120 ${BENCH_SOURCE_DIR}/${name} --smoke --build ${CMAKE_BINARY_DIR})
  endforeach()
  stallgraph_test(bench.pairs_self_test 20 ${BENCH_PYTHON} ${BENCH_SOURCE_DIR}/pairs.py)
endif()
