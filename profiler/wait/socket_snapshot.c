#include "profiler/wait/socket_snapshot.h"

#include <stdlib.h>

#include "profiler/base/clock.h"
#include "profiler/base/vec.h"

/* Of each table: some 3,500 sockets. */
enum { TABLE_LIMIT_BYTES = 512 * 1024, PAUSE_FACTOR = 100, SHORTEST_PAUSE_MS = 200 };

struct filling {
    struct socket_snapshot *snapshot;
    bool is_ipv6, is_udp;
};

void socket_snapshot_finish(struct socket_snapshot *snapshot)
{
    free(snapshot->items);
    id_map_finish(&snapshot->index_of_inode);
    *snapshot = (struct socket_snapshot){0};
}

static int keep(void *context, const struct proc_net_socket *socket)
{
    const struct filling *filling = context;
    struct socket_snapshot *snapshot = filling->snapshot;

    /* What no process holds any more, a connection in TIME_WAIT for one, has none. */
    if (socket->inode == 0)
        return 0;
    id_map_put(&snapshot->index_of_inode, socket->inode, (uint32_t)snapshot->count);
    VEC_PUSH(snapshot, ((struct socket_snapshot_entry){
                           .socket = *socket, .is_ipv6 = filling->is_ipv6, .is_udp = filling->is_udp}));
    return 0;
}

static void read_tables(struct socket_snapshot *snapshot, int proc_fd)
{
    static const struct {
        const char *name;
        bool is_ipv6, is_udp;
    } tables[] = {{"tcp", false, false}, {"tcp6", true, false}, {"udp", false, true}, {"udp6", true, true}};

    snapshot->count = 0;
    id_map_clear(&snapshot->index_of_inode);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        struct filling filling = {
            .snapshot = snapshot, .is_ipv6 = tables[i].is_ipv6, .is_udp = tables[i].is_udp};

        proc_net_walk(proc_fd, tables[i].name, TABLE_LIMIT_BYTES, keep, &filling);
    }
}

const struct socket_snapshot_entry *socket_snapshot_find(struct socket_snapshot *snapshot, int proc_fd,
                                                         uint64_t inode)
{
    uint64_t begin_ns = clock_now_ns();
    uint32_t index;

    if (id_map_get(&snapshot->index_of_inode, inode, &index))
        return &snapshot->items[index];
    if (begin_ns < snapshot->next_ns)
        return NULL;
    read_tables(snapshot, proc_fd);
    snapshot->next_ns = clock_now_ns();
    snapshot->next_ns += (snapshot->next_ns - begin_ns) * PAUSE_FACTOR + SHORTEST_PAUSE_MS * NS_PER_MS;
    return id_map_get(&snapshot->index_of_inode, inode, &index) ? &snapshot->items[index] : NULL;
}
