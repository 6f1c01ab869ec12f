# The workload programs. Each is compiled by a command of its own, not as a target with the project's flags: what they are
# made of (frame pointers, linker, no sanitizer, no coverage) is part of the test, whatever the build type is.
set(WORKLOAD_DIR ${CMAKE_BINARY_DIR}/tests/workloads)
set(WORKLOAD_SOURCE_DIR ${CMAKE_CURRENT_LIST_DIR})
set(WORKLOAD_WARNINGS -Wall -Wextra -Werror)
file(MAKE_DIRECTORY ${WORKLOAD_DIR})
set(workload_programs)

# stallgraph_workload(PROGRAM SOURCE COMPILER FLAG...)
function(stallgraph_workload program source compiler)
  set(output ${WORKLOAD_DIR}/${program})
  set(helper ${WORKLOAD_SOURCE_DIR}/truth.c)
  if(source MATCHES "\\.cc$")
    set(language -x c++ -std=gnu++17)
    set(helper ${WORKLOAD_DIR}/truth.o)
  else()
    set(language -std=gnu17)
  endif()
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${compiler} ${language} -D_GNU_SOURCE -pthread ${WORKLOAD_WARNINGS} ${ARGN} -o ${output}
            ${WORKLOAD_SOURCE_DIR}/${source} -x none ${helper}
    DEPENDS ${WORKLOAD_SOURCE_DIR}/${source} ${WORKLOAD_SOURCE_DIR}/truth.h ${helper}
    COMMENT "Workload ${program}"
    VERBATIM)
  set(workload_programs ${workload_programs} ${output} PARENT_SCOPE)
endfunction()

# Default: main paths keep frame pointers, so that every unwinder has a fair chance.
set(plain -O1 -fno-omit-frame-pointer)
foreach(name IN ITEMS
    blocked_since_start burn_and_nap busy deep_stack exec_midway forked_workers late_threads mangled_names many_threads
    lock_owner mixed_threads odd_comm other_busy ping_pong self_and_child short_threads signal_frame thread_lifetimes thread_rename vfork_wait
    wait_places wait_sockets)
  stallgraph_workload(${name} ${name}.c ${CMAKE_C_COMPILER} ${plain})
endforeach()

stallgraph_workload(deny_perf deny_perf.c ${CMAKE_C_COMPILER} ${plain})
# Its big frames must not be touched. Without frame pointers: /proc does not tell them.
stallgraph_workload(hung_stack hung_stack.c ${CMAKE_C_COMPILER} -O1 -fomit-frame-pointer -fno-stack-clash-protection)

# Without frame pointers: what DWARF unwinding is for.
stallgraph_workload(nested_sleep nested_sleep.c ${CMAKE_C_COMPILER} -O2 -fomit-frame-pointer)
stallgraph_workload(leaf_frame leaf_frame.c ${CMAKE_C_COMPILER} -O2 -fno-omit-frame-pointer -momit-leaf-frame-pointer)
stallgraph_workload(deep_stack_nofp deep_stack.c ${CMAKE_C_COMPILER} -O1 -fomit-frame-pointer)
stallgraph_workload(signal_frame_nofp signal_frame.c ${CMAKE_C_COMPILER} -O2 -fomit-frame-pointer)
stallgraph_workload(mixed_threads_nofp mixed_threads.c ${CMAKE_C_COMPILER} -O2 -fomit-frame-pointer)

# The ways to link: file offsets and addresses differ between them.
stallgraph_workload(busy_no_pie busy.c ${CMAKE_C_COMPILER} ${plain} -no-pie -fno-pie)
stallgraph_workload(busy_static busy.c ${CMAKE_C_COMPILER} ${plain} -static)
stallgraph_workload(busy_static_pie busy.c ${CMAKE_C_COMPILER} ${plain} -static-pie -fPIE)
stallgraph_workload(busy_nofp busy.c ${CMAKE_C_COMPILER} -O2 -fomit-frame-pointer)
find_program(WORKLOAD_CLANG NAMES clang clang-14 clang-15 clang-16)
find_program(WORKLOAD_LLD NAMES ld.lld)
find_program(WORKLOAD_MOLD NAMES ld.mold mold)
if(WORKLOAD_CLANG AND WORKLOAD_LLD)
  stallgraph_workload(busy_lld busy.c ${WORKLOAD_CLANG} ${plain} -fuse-ld=lld)
  stallgraph_workload(busy_lld_no_pie busy.c ${WORKLOAD_CLANG} ${plain} -fuse-ld=lld -no-pie -fno-pie)
endif()
if(WORKLOAD_CLANG AND WORKLOAD_MOLD)
  stallgraph_workload(busy_mold busy.c ${WORKLOAD_CLANG} ${plain} -fuse-ld=mold)
endif()

# A C++ program, where there is a C++ compiler; the project itself needs none.
find_program(WORKLOAD_CXX NAMES g++ clang++ clang++-14)
if(WORKLOAD_CXX)
  add_custom_command(
    OUTPUT ${WORKLOAD_DIR}/truth.o
    COMMAND ${CMAKE_C_COMPILER} -std=gnu17 -D_GNU_SOURCE -pthread ${WORKLOAD_WARNINGS} ${plain} -c -o
            ${WORKLOAD_DIR}/truth.o ${WORKLOAD_SOURCE_DIR}/truth.c
    DEPENDS ${WORKLOAD_SOURCE_DIR}/truth.c ${WORKLOAD_SOURCE_DIR}/truth.h
    VERBATIM)
  stallgraph_workload(cxx_names cxx_names.cc ${WORKLOAD_CXX} ${plain})
endif()

add_custom_target(workloads ALL DEPENDS ${workload_programs})
