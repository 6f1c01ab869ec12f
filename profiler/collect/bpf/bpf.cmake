# Each NAME.bpf.c of this folder becomes NAME.skel.h, which the collect layer embeds.
find_program(STALLGRAPH_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14 REQUIRED)
find_program(STALLGRAPH_LLVM_STRIP NAMES llvm-strip llvm-strip-19 llvm-strip-18 llvm-strip-17 llvm-strip-16 llvm-strip-15
                                         llvm-strip-14)
find_program(STALLGRAPH_BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin REQUIRED)
pkg_check_modules(BPF REQUIRED libbpf>=1.0)

set(bpf_source_dir ${PROJECT_SOURCE_DIR}/profiler/collect/bpf)
set(bpf_output_dir ${PROJECT_BINARY_DIR}/bpf)
file(MAKE_DIRECTORY ${bpf_output_dir})
file(GLOB bpf_sources CONFIGURE_DEPENDS ${bpf_source_dir}/*.bpf.c)
string(REGEX REPLACE "x86_64|AMD64" "x86" bpf_arch ${CMAKE_SYSTEM_PROCESSOR})

# Without the debug sections, BTF apart, an object is a twentieth of its size.
set(bpf_strip ${CMAKE_COMMAND} -E true)
if(STALLGRAPH_LLVM_STRIP)
  set(bpf_strip ${STALLGRAPH_LLVM_STRIP} -g)
endif()

foreach(source ${bpf_sources})
  get_filename_component(name ${source} NAME)
  string(REPLACE ".bpf.c" "" name ${name})
  set(object ${bpf_output_dir}/${name}.bpf.o)
  set(skeleton ${bpf_output_dir}/${name}.skel.h)
  add_custom_command(
    OUTPUT ${skeleton}
    BYPRODUCTS ${object}
    COMMAND ${STALLGRAPH_CLANG} -target bpf -D__TARGET_ARCH_${bpf_arch} -O2 -g -Wall -Wextra -Werror
            -I/usr/include/${CMAKE_LIBRARY_ARCHITECTURE} -I${PROJECT_SOURCE_DIR} ${BPF_CFLAGS} -MD -MF ${object}.d
            -MT ${skeleton} -c ${source} -o ${object}
    COMMAND ${bpf_strip} ${object}
    COMMAND ${CMAKE_COMMAND} -E echo "/* NOLINTBEGIN: generated */" > ${skeleton}
    COMMAND ${STALLGRAPH_BPFTOOL} gen skeleton ${object} name ${name}_bpf >> ${skeleton}
    COMMAND ${CMAKE_COMMAND} -E echo "/* NOLINTEND */" >> ${skeleton}
    DEPENDS ${source}
    DEPFILE ${object}.d
    COMMENT "BPF program ${name}"
    VERBATIM)
  target_sources(collect PRIVATE ${skeleton})
endforeach()

target_compile_definitions(collect PRIVATE STALLGRAPH_HAVE_BPF=1)
# SYSTEM: the generated headers do not keep to our warnings.
target_include_directories(collect SYSTEM PRIVATE ${bpf_output_dir})
target_link_libraries(collect PUBLIC ${BPF_LIBRARIES})
