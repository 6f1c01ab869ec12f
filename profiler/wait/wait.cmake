# The system calls of the machine that is built for, from its own headers: a row "[7] = "poll"," each.
execute_process(COMMAND ${CMAKE_C_COMPILER} -E -dM -include sys/syscall.h -x c /dev/null
                OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "#define __NR_[a-z0-9_]+ [0-9]+\n" lines "${macros}")
set(rows "")
foreach(line ${lines})
  string(REGEX REPLACE "#define __NR_([a-z0-9_]+) ([0-9]+)\n" "[\\2] = \"\\1\",\n" row "${line}")
  string(APPEND rows "${row}")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/syscall_names.inc CONTENT "${rows}")
target_include_directories(wait PRIVATE ${CMAKE_BINARY_DIR}/generated)
