# unwind_targets, built in the ways that binaries are made of: what a stack looks like, and where its tables are, depends on
# the compiler, the linker and their flags, not on this build's type.
set(UNWIND_WORKLOAD_DIR ${CMAKE_BINARY_DIR}/tests/workloads)
set(unwind_source ${CMAKE_CURRENT_LIST_DIR}/unwind_targets.c)
file(MAKE_DIRECTORY ${UNWIND_WORKLOAD_DIR})
set(unwind_programs)

function(unwind_workload name)
  set(output ${UNWIND_WORKLOAD_DIR}/unwind_targets_${name})
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${ARGN} -std=gnu17 -Wall -Wextra -Werror -pthread -o ${output} ${unwind_source}
    DEPENDS ${unwind_source}
    COMMENT "Workload unwind_targets_${name}"
    VERBATIM)
  set(unwind_programs ${unwind_programs} ${output} PARENT_SCOPE)
endfunction()

set(without_frames -O2 -fomit-frame-pointer)
unwind_workload(O2 gcc ${without_frames})
unwind_workload(O0 gcc -O0)
unwind_workload(frames gcc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls)
unwind_workload(no_pie gcc ${without_frames} -no-pie)
unwind_workload(static gcc ${without_frames} -static)
unwind_workload(static_pie gcc ${without_frames} -static-pie)
# No tables for the loader: .eh_frame is found by the section header.
unwind_workload(no_hdr gcc ${without_frames} -Wl,--no-eh-frame-hdr)
# Stripped of section headers' use: no symbols, and code in a segment of its own whose offset is not its address.
unwind_workload(stripped gcc ${without_frames} -s -Wl,-z,separate-code)
# The functions' own rules are only in .debug_frame, plain and compressed.
unwind_workload(debug_frame gcc ${without_frames} -g -fno-asynchronous-unwind-tables -fno-unwind-tables)
unwind_workload(debug_frame_gz gcc ${without_frames} -g -gz=zlib -fno-asynchronous-unwind-tables -fno-unwind-tables)
find_program(CLANG_FOR_UNWIND NAMES clang clang-14)
find_program(LLD_FOR_UNWIND NAMES ld.lld ld.lld-14)
if(CLANG_FOR_UNWIND AND LLD_FOR_UNWIND)
  unwind_workload(lld ${CLANG_FOR_UNWIND} ${without_frames} -fuse-ld=lld)
endif()

add_custom_target(unwind_workloads ALL DEPENDS ${unwind_programs})
if(TARGET test_unwind_libunwind)
  add_dependencies(test_unwind_libunwind unwind_workloads)
endif()
