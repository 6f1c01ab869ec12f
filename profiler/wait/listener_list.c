#include "profiler/wait/listener_list.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "profiler/base/vec.h"
#include "profiler/wait/proc_net.h"

enum { TABLE_LIMIT_BYTES = 512 * 1024, END_OF_LISTENERS = 1 };

void listener_list_finish(struct listener_list *list)
{
    free(list->items);
    *list = (struct listener_list){0};
}

static int add_listener(void *context, const struct proc_net_socket *socket)
{
    struct listener_list *list = context;

    if (socket->state != PROC_NET_LISTEN)
        return END_OF_LISTENERS;
    VEC_PUSH(list, ((struct listener){.address = socket->local, .inode = socket->inode}));
    return 0;
}

int listener_list_read(struct listener_list *list, int proc_fd)
{
    int r4;
    int r6;

    list->count = 0;
    r4 = proc_net_walk(proc_fd, "tcp", TABLE_LIMIT_BYTES, add_listener, list);
    r6 = proc_net_walk(proc_fd, "tcp6", TABLE_LIMIT_BYTES, add_listener, list);
    return r4 < 0 && r6 < 0 ? r4 : 0;
}

/* A socket that is bound to :: takes IPv4 connections too, as a rule. */
static bool takes(const struct socket_address *own, const struct socket_address *address)
{
    if (own->port != address->port)
        return false;
    return socket_address_equal(own, address) ||
           (socket_address_is_any(own) && (own->family == address->family || own->family == AF_INET6));
}

const struct listener *listener_list_find(const struct listener_list *list,
                                          const struct socket_address *address)
{
    for (size_t i = 0; i < list->count; i++)
        if (takes(&list->items[i].address, address))
            return &list->items[i];
    return NULL;
}
