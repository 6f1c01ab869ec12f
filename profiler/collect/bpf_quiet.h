/* libbpf prints on stderr unless told otherwise; its return codes say enough. */
#ifndef STALLGRAPH_COLLECT_BPF_QUIET_H
#define STALLGRAPH_COLLECT_BPF_QUIET_H

/* For the whole process; call it before anything else of libbpf. */
void bpf_keep_quiet(void);

#endif
