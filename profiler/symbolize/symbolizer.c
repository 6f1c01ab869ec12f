#include "profiler/symbolize/symbolizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/base/cleanup.h"
#include "profiler/base/memory.h"
#include "profiler/symbolize/demangle.h"
#include "profiler/symbolize/elf_symbols.h"
#include "profiler/symbolize/kallsyms.h"
#include "profiler/symbolize/perf_map.h"
#include "profiler/symbolize/symbol_name.h"
#include "profiler/symbolize/symbol_table.h"

static const char kernel_name[] = "[kernel]";
static const char jit_name[] = "[jit]";

struct symbolizer {
    struct symbolizer_context context;
    struct symbol_table **binaries; /* by binary id; NULL = not asked yet */
    size_t binary_count;
    struct perf_map **perf_maps; /* by process id; NULL = not read yet */
    size_t perf_map_count;
    struct symbol_table *kernel; /* NULL = not asked yet */

    /* What the last answer points into. */
    char *name;
    char *module;
    char build_id[BINARY_BUILD_ID_MAX_BYTES * 2 + 1];
};

/* One place where names come from. resolve returns false where it has none for the location, else both
 * strings, which the symbolizer takes over. */
struct symbol_source {
    const char *name;
    bool (*resolve)(struct symbolizer *symbolizer, const struct location *location, char **ret_name,
                    char **ret_module);
};

/* Makes room for ids below count in an array of pointers. */
static void *grow_pointers(void *pointers, size_t *count, size_t wanted)
{
    if (wanted <= *count)
        return pointers;
    pointers = memory_resize(pointers, wanted, sizeof(void *));
    memset((char *)pointers + *count * sizeof(void *), 0, (wanted - *count) * sizeof(void *));
    *count = wanted;
    return pointers;
}

static const struct binary *binary_of(const struct symbolizer *symbolizer, const struct location *location)
{
    if (location->kind != LOCATION_USER ||
        location->owner >= binary_table_count(symbolizer->context.binaries))
        return NULL;
    return binary_table_get(symbolizer->context.binaries, location->owner);
}

static bool resolve_elf(struct symbolizer *symbolizer, const struct location *location, char **ret_name,
                        char **ret_module)
{
    const struct binary *binary = binary_of(symbolizer, location);
    struct symbol_table **table;
    const char *name;

    if (binary == NULL || binary->kind == BINARY_JIT || !binary->is_elf)
        return false;
    symbolizer->binaries =
        grow_pointers(symbolizer->binaries, &symbolizer->binary_count, (size_t)binary->id + 1);
    table = &symbolizer->binaries[binary->id];
    if (*table == NULL)
        *table = elf_symbols_load(&symbolizer->context, binary);
    name = symbol_table_find(*table, location->address);
    if (name == NULL)
        return false;
    *ret_name = demangle_name(name);
    *ret_module = string_copy(binary_base_name(binary));
    return true;
}

static bool resolve_perf_map(struct symbolizer *symbolizer, const struct location *location, char **ret_name,
                             char **ret_module)
{
    const struct binary *binary = binary_of(symbolizer, location);
    uint32_t process;
    const char *name;

    if (location->kind == LOCATION_UNMAPPED)
        process = location->owner;
    else if (binary != NULL && binary->kind == BINARY_JIT)
        process = binary->jit_process;
    else
        return false;
    if (process >= symbolizer->perf_map_count || symbolizer->perf_maps[process] == NULL)
        symbolizer_load_perf_map(symbolizer, process);
    if (process >= symbolizer->perf_map_count)
        return false;
    name = perf_map_find(symbolizer->perf_maps[process], location->address);
    if (name == NULL)
        return false;
    *ret_name = string_copy(name);
    *ret_module = string_copy(jit_name);
    return true;
}

static bool resolve_kernel(struct symbolizer *symbolizer, const struct location *location, char **ret_name,
                           char **ret_module)
{
    const char *entry;
    const char *module;
    AUTO_FREE char *mangled = NULL;

    if (location->kind != LOCATION_KERNEL)
        return false;
    if (symbolizer->kernel == NULL)
        symbolizer->kernel = kallsyms_load("/proc/kallsyms");
    entry = symbol_table_find(symbolizer->kernel, location->address);
    if (entry == NULL)
        return false;
    mangled = string_copy_length(entry, kallsyms_split(entry, &module));
    *ret_name = demangle_name(mangled);
    *ret_module = string_copy(module[0] != '\0' ? module : kernel_name);
    return true;
}

/* In the order in which they are asked. */
static const struct symbol_source sources[] = {
    {"elf", resolve_elf},
    {"perf-map", resolve_perf_map},
    {"kernel", resolve_kernel},
};

struct symbolizer *symbolizer_create(const struct symbolizer_context *context)
{
    struct symbolizer *symbolizer = memory_zeroed(1, sizeof *symbolizer);

    symbolizer->context = *context;
    return symbolizer;
}

void symbolizer_destroy(struct symbolizer *symbolizer)
{
    if (symbolizer == NULL)
        return;
    for (size_t i = 0; i < symbolizer->binary_count; i++)
        symbol_table_destroy(symbolizer->binaries[i]);
    for (size_t i = 0; i < symbolizer->perf_map_count; i++)
        perf_map_destroy(symbolizer->perf_maps[i]);
    symbol_table_destroy(symbolizer->kernel);
    free(symbolizer->binaries);
    free(symbolizer->perf_maps);
    free(symbolizer->name);
    free(symbolizer->module);
    free(symbolizer);
}

/* The name of a place that nobody can name. */
static void name_unknown(const struct location *location, const struct binary *binary, char **ret_name,
                         char **ret_module)
{
    switch (location->kind) {
    case LOCATION_KERNEL:
        *ret_name = string_copy(kernel_name);
        *ret_module = string_copy(kernel_name);
        return;
    case LOCATION_USER:
        if (binary == NULL)
            break;
        *ret_name = string_format("%s+0x%" PRIx64, binary_base_name(binary), location->address);
        *ret_module = string_copy(binary_base_name(binary));
        return;
    case LOCATION_UNMAPPED:
    case LOCATION_SYNTHETIC:
        break;
    }
    *ret_name = string_format("0x%" PRIx64, location->address);
    *ret_module = string_copy("");
}

/* Demanglers make long names of short ones. Takes the name over. */
static char *shorten_name(char *name)
{
    size_t length = strlen(name);
    char *shorter;

    if (length <= SYMBOL_NAME_MAX_BYTES)
        return name;
    shorter = memory_resize(NULL, SYMBOL_NAME_MAX_BYTES + 1, 1);
    symbol_name_copy(shorter, name, length);
    free(name);
    return shorter;
}

static void format_build_id(const struct binary *binary, char *ret_text)
{
    ret_text[0] = '\0';
    for (size_t i = 0; binary != NULL && i < binary->build_id_size_bytes; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", binary->build_id[i]);
}

void symbolizer_resolve(struct symbolizer *symbolizer, const struct location *location,
                        struct symbol *ret_symbol)
{
    const struct binary *binary = binary_of(symbolizer, location);
    char *name = NULL;
    char *module = NULL;
    bool is_named = false;

    for (size_t i = 0; i < sizeof sources / sizeof sources[0] && !is_named; i++)
        is_named = sources[i].resolve(symbolizer, location, &name, &module);
    if (!is_named)
        name_unknown(location, binary, &name, &module);
    free(symbolizer->name);
    free(symbolizer->module);
    symbolizer->name = shorten_name(name);
    symbolizer->module = module;
    format_build_id(binary, symbolizer->build_id);
    *ret_symbol = (struct symbol){
        .name = symbolizer->name,
        .module = symbolizer->module,
        .build_id = symbolizer->build_id,
        .is_named = is_named,
    };
}

void symbolizer_load_perf_map(struct symbolizer *symbolizer, uint32_t process)
{
    const struct symbolizer_context *context = &symbolizer->context;
    const struct process *entry;
    AUTO_FREE char *path = NULL;
    AUTO_CLOSE int fd = -1;
    pid_t pid;

    if (context->processes == NULL || process >= process_table_process_count(context->processes))
        return;
    symbolizer->perf_maps =
        grow_pointers(symbolizer->perf_maps, &symbolizer->perf_map_count, (size_t)process + 1);
    if (symbolizer->perf_maps[process] == NULL)
        symbolizer->perf_maps[process] = perf_map_create();
    if (context->open_in_target == NULL)
        return;
    entry = process_table_process(context->processes, process);
    pid = context->inner_pid != NULL ? context->inner_pid(context->open_context, process) : entry->pid;
    path = string_format("/tmp/perf-%d.map", (int)pid);
    fd = context->open_in_target(context->open_context, process, path);
    if (fd >= 0)
        perf_map_read(symbolizer->perf_maps[process], fd);
}
