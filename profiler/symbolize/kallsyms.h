/* Names of the kernel's functions, from /proc/kallsyms (proc(5)).
 *
 * A table made here has names of the form "vfs_read", or "ext4_sync_file\t[ext4]" for a function of a module.
 */
#ifndef STALLGRAPH_SYMBOLIZE_KALLSYMS_H
#define STALLGRAPH_SYMBOLIZE_KALLSYMS_H

#include <stddef.h>

#include "profiler/symbolize/symbol_table.h"

/* Both never NULL; empty where the file is not readable or all its addresses are zero (kptr_restrict, no
 * CAP_SYSLOG). kallsyms gives no sizes: a function reaches to the next symbol of any kind, at most 1 MiB. */
struct symbol_table *kallsyms_load(const char *path);
struct symbol_table *kallsyms_parse(const char *text, size_t length_bytes);

/* Splits a name of such a table. *ret_module begins with '[', or is "" for the kernel proper; it points into
 * entry. */
size_t kallsyms_split(const char *entry, const char **ret_module);

#endif
