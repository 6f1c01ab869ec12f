/* Finds the separate file that holds a stripped binary's symbols: by build id below /usr/lib/debug/.build-id,
 * by .gnu_debuglink beside the binary, in its .debug folder and below /usr/lib/debug; in the target's root
 * first, then on the host. */
#ifndef STALLGRAPH_SYMBOLIZE_DEBUG_FILE_H
#define STALLGRAPH_SYMBOLIZE_DEBUG_FILE_H

#include "profiler/model/binary.h"
#include "profiler/symbolize/elf_file.h"
#include "profiler/symbolize/symbolizer_context.h"

/* file is the binary's own, open. What is found has the same build id where the binary has one, and, when
 * found by link, the CRC that the link says. Returns 0 with *ret_debug to be closed, or -ENOENT. */
int debug_file_open(const struct symbolizer_context *context, const struct binary *binary,
                    struct elf_file *file, struct elf_file *ret_debug);

#endif
