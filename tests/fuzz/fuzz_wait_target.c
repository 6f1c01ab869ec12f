/* What naming a wait takes from the target: its memory (arrays of descriptors, addresses, mutexes), links of
 * descriptors, names of sockets and functions. And the tables of /proc/PID/net. The first two bytes choose the system
 * call, the rest is both its arguments and the memory. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/model/wait_role.h"
#include "profiler/wait/fd_link.h"
#include "profiler/wait/futex_wait.h"
#include "profiler/wait/proc_net.h"
#include "profiler/wait/service_name.h"
#include "profiler/wait/socket_address.h"
#include "profiler/wait/syscall_fd.h"
#include "profiler/wait/wait_name.h"
#include "profiler/wait/wait_refine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size;
};

static int read_input(void *context, uint64_t address, void *ret_bytes, size_t size_bytes)
{
    const struct input *input = context;

    if (address >= input->size || size_bytes > input->size - address)
        return -EFAULT;
    memcpy(ret_bytes, input->data + address, size_bytes);
    return 0;
}

static void check_text(const char *text, size_t room)
{
    if (memchr(text, '\0', room) == NULL)
        abort();
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            abort(); /* such bytes are marks of the namer's own */
}

static void fuzz_calls(struct input *input)
{
    const struct target_memory memory = {.context = input, .read = read_input};
    uint64_t arguments[6] = {0};
    struct syscall_fds fds;
    struct futex_wait futex;

    memcpy(arguments, input->data, input->size < sizeof arguments ? input->size : sizeof arguments);
    for (size_t i = 1; i < 6; i += 2) /* mostly small, so that addresses lead somewhere */
        arguments[i] %= 300;
    if (syscall_fd_list(input->data[0] | (input->data[1] & 1) << 8, arguments, &memory, &fds) &&
        fds.count > SYSCALL_FD_LIMIT)
        abort();
    futex_wait_read(arguments, &memory, &futex);
    if (futex.owner < 0)
        abort();
}

static void fuzz_names(const char *text, size_t size)
{
    struct proc_net_socket socket;
    struct socket_address address;
    struct fd_link link;
    char formatted[SOCKET_ADDRESS_TEXT_BYTES];

    (void)proc_net_parse_line(text, size, &socket);
    fd_link_parse(text, size, &link);
    check_text(link.path, sizeof link.path);
    if (socket_address_from(text, size, &address) == 0) {
        socket_address_format(&address, formatted, sizeof formatted);
        check_text(formatted, sizeof formatted);
    }
}

static void fuzz_texts(const char *text, size_t size)
{
    char *copy = malloc(size + 1);
    char refined[WAIT_TEXT_BYTES];
    char service[WAIT_TEXT_BYTES];

    if (copy == NULL)
        return;
    memcpy(copy, text, size);
    copy[size] = '\0';
    const struct wait_function frames[] = {{copy, copy}, {copy, "srv"}};

    service_of_wait(copy, service, sizeof service);
    wait_refine("[wait: lock]", frames, 2, refined, sizeof refined);
    if (wait_role_of_text(refined) != WAIT_ROLE_LOCK && wait_role_of_text(refined) != WAIT_ROLE_CONDITION &&
        wait_role_of_text(refined) != WAIT_ROLE_TASK)
        abort();
    (void)wait_kind_of_text(copy);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.data = data, .size = size};

    if (size < 2)
        return 0;
    fuzz_calls(&input);
    fuzz_names((const char *)data, size);
    fuzz_texts((const char *)data, size);
    return 0;
}
