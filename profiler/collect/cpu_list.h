/* The CPUs that are online. */
#ifndef STALLGRAPH_COLLECT_CPU_LIST_H
#define STALLGRAPH_COLLECT_CPU_LIST_H

#include <stddef.h>

enum { CPU_LIST_MAX = 8192 }; /* the kernel's own limit for x86-64 */

/* Pure: the text of /sys/devices/system/cpu/online, "0-3,8\n", in the format of cpuset(7). Returns how many
 * numbers it wrote to ret_cpus, or -EBADMSG, also when there are more than CPU_LIST_MAX. */
int cpu_list_parse(const char *text, size_t length, int ret_cpus[CPU_LIST_MAX]);

/* The caller frees *ret_cpus. Returns how many, at least 1. */
size_t cpu_list_read_online(int **ret_cpus);

#endif
