#include "profiler/wait/socket_namer.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "profiler/base/clock.h"
#include "profiler/base/id_map.h"
#include "profiler/base/memory.h"
#include "profiler/base/vec.h"
#include "profiler/wait/listener_list.h"
#include "profiler/wait/socket_role.h"
#include "profiler/wait/socket_table.h"

enum { MAX_KEPT = 100000 };

/* What may change is looked at again after so long: a connection that is being made, a socket that is not
 * connected, one that could not be looked up. Listening sockets are read so often at most. */
static const uint64_t doubt_ns = NS_PER_S;
static const uint64_t listeners_ns = 200 * NS_PER_MS;

struct kept {
    struct socket_name name;
    int error;         /* -errno of the look-up, or 0 */
    uint64_t until_ns; /* UINT64_MAX = for good */
};

struct network {
    uint64_t inode;
    uint64_t read_ns;
    struct listener_list listeners;
    struct socket_snapshot sockets;
};

struct socket_namer {
    struct service_finder *finder;
    VEC_OF(struct kept) kept;
    struct id_map kept_of_socket; /* (process, inode) -> index */
    VEC_OF(struct network) networks;
};

struct socket_namer *socket_namer_create(struct service_finder *finder)
{
    struct socket_namer *namer = memory_zeroed(1, sizeof *namer);

    namer->finder = finder;
    return namer;
}

void socket_namer_destroy(struct socket_namer *namer)
{
    if (namer == NULL)
        return;
    for (size_t i = 0; i < namer->networks.count; i++) {
        listener_list_finish(&namer->networks.items[i].listeners);
        socket_snapshot_finish(&namer->networks.items[i].sockets);
    }
    free(namer->networks.items);
    free(namer->kept.items);
    id_map_finish(&namer->kept_of_socket);
    free(namer);
}

static struct network *network_of(struct socket_namer *namer, int proc_fd)
{
    uint64_t inode = socket_owner_network(proc_fd);

    for (size_t i = 0; i < namer->networks.count; i++)
        if (namer->networks.items[i].inode == inode)
            return &namer->networks.items[i];
    VEC_PUSH(&namer->networks, ((struct network){.inode = inode}));
    return &namer->networks.items[namer->networks.count - 1];
}

/* Whether the list was read just now. */
static bool refresh_listeners(struct network *network, int proc_fd)
{
    uint64_t now_ns = clock_now_ns();

    if (network->read_ns != 0 && now_ns - network->read_ns <= listeners_ns)
        return false;
    listener_list_read(&network->listeners, proc_fd);
    network->read_ns = now_ns;
    return true;
}

static bool is_internet(const struct socket_address *address)
{
    return address->family == AF_INET || address->family == AF_INET6;
}

static uint32_t ask_service(struct socket_namer *namer, const struct socket_process *process,
                            uint64_t network, const struct socket_address *local,
                            const struct socket_address *remote)
{
    return service_finder_ask(namer->finder, &(struct far_end_question){.proc_fd = process->proc_fd,
                                                                        .network = network,
                                                                        .local = *local,
                                                                        .remote = *remote});
}

static void set_where(struct socket_name *name, const struct socket_info *info)
{
    bool own = name->role == WAIT_ROLE_ACCEPT || name->role == WAIT_ROLE_CLIENT;
    const struct socket_address *address = own ? &info->local : &info->remote;

    if (own && is_internet(address))
        snprintf(name->where, sizeof name->where, ":%u", address->port);
    else
        socket_address_format(address, name->where, sizeof name->where);
}

/* What of it can still change. */
static bool is_settled(const struct socket_info *info, bool fresh)
{
    if (info->listening)
        return true;
    return !info->connecting && fresh && (info->remote.family != AF_UNSPEC || info->domain == AF_UNIX);
}

static void look_up(struct socket_namer *namer, const struct socket_process *process, int fd, uint64_t inode,
                    struct kept *kept)
{
    struct network *network = network_of(namer, process->proc_fd);
    struct socket_info info;
    bool fresh;

    *kept = (struct kept){.until_ns = clock_now_ns() + doubt_ns};
    kept->error = socket_table_find(&network->sockets, process->proc_fd, process->pid_fd, fd, inode, &info);
    if (kept->error < 0)
        return;
    fresh = refresh_listeners(network, process->proc_fd);
    kept->name.role = socket_role(&info, &network->listeners);
    kept->name.connecting = info.connecting;
    kept->name.service = SOCKET_NO_SERVICE;
    snprintf(kept->name.protocol, sizeof kept->name.protocol, "%s",
             info.domain == AF_UNIX && kept->name.role == WAIT_ROLE_QUEUE ? "socketpair"
                                                                          : socket_protocol_name(&info));
    set_where(&kept->name, &info);
    if (kept->name.role == WAIT_ROLE_OUTBOUND && is_internet(&info.remote))
        kept->name.service = ask_service(namer, process, network->inode, &info.local, &info.remote);
    if (kept->name.role == WAIT_ROLE_OUTBOUND && info.domain == AF_UNIX && info.peer_pid > 0)
        socket_owner_name(info.peer_pid, kept->name.owner);
    if (is_settled(&info, fresh))
        kept->until_ns = UINT64_MAX;
}

int socket_namer_find(struct socket_namer *namer, const struct socket_process *process, int fd,
                      uint64_t inode, const struct socket_name **ret_name)
{
    uint64_t key = hash_mix(process->id, inode);
    struct kept *kept;
    uint32_t index;

    if (!id_map_get(&namer->kept_of_socket, key, &index)) {
        if (namer->kept.count == MAX_KEPT) {
            id_map_clear(&namer->kept_of_socket);
            namer->kept.count = 0;
        }
        index = (uint32_t)namer->kept.count;
        VEC_PUSH(&namer->kept, ((struct kept){0}));
        id_map_put(&namer->kept_of_socket, key, index);
    }
    kept = &namer->kept.items[index];
    if (kept->until_ns != UINT64_MAX && clock_now_ns() >= kept->until_ns)
        look_up(namer, process, fd, inode, kept);
    *ret_name = &kept->name;
    return kept->error;
}

void socket_namer_of_target(struct socket_namer *namer, const struct socket_process *process,
                            const struct socket_address *target, const char *protocol,
                            struct socket_name *ret_name)
{
    const struct socket_address unknown = {.family = target->family};

    *ret_name =
        (struct socket_name){.role = WAIT_ROLE_OUTBOUND, .connecting = true, .service = SOCKET_NO_SERVICE};
    snprintf(ret_name->protocol, sizeof ret_name->protocol, "%s", protocol);
    socket_address_format(target, ret_name->where, sizeof ret_name->where);
    if (is_internet(target))
        ret_name->service =
            ask_service(namer, process, socket_owner_network(process->proc_fd), &unknown, target);
}
