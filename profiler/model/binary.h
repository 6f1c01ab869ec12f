/* The files that code of a target is mapped from, each kept once with a descriptor: a binary may be deleted
 * or replaced, and its process may be gone, before its names are wanted.
 *
 *   struct binary_key key = {.device = dev, .inode = ino};
 *   struct binary *b = binary_table_find(table, &key);
 *   if (b == NULL)
 *       b = binary_table_add_file(table, &key, "/usr/bin/srv", fd);   // takes the fd; -1 = could not be
 * opened if (binary_offset_to_vaddr(b, pc - mapping->start + mapping->file_offset, &vaddr)) ...
 *
 * All content is hostile: whoever reads it does so by pread (binary_read), never by mmap, since a file that
 * shrinks while it is mapped kills the reader. */
#ifndef STALLGRAPH_MODEL_BINARY_H
#define STALLGRAPH_MODEL_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum binary_kind {
    BINARY_FILE, /* an ELF file, or some other file that is mapped executable */
    BINARY_VDSO, /* the kernel's vDSO; its image is our own copy of it */
    BINARY_JIT,  /* anonymous executable memory or an executable memfd of one process; addresses are absolute
                  */
};

/* A PT_LOAD header: file bytes [offset, offset+file_size_bytes) stand at addresses [vaddr,
 * vaddr+memory_size_bytes). */
struct binary_segment {
    uint64_t vaddr;
    uint64_t offset;
    uint64_t file_size_bytes;
    uint64_t memory_size_bytes;
    bool executable;
};

struct binary_key {
    uint64_t device; /* makedev(3) of what /proc/PID/maps or MMAP2 say, which need not be what stat(2) says */
    uint64_t inode;
    uint64_t generation; /* of MMAP2; 0 from /proc/PID/maps, and then not compared */
};

enum { BINARY_BUILD_ID_MAX_BYTES = 64 };

struct binary {
    uint32_t id;
    enum binary_kind kind;
    struct binary_key key;
    uint32_t jit_process; /* BINARY_JIT: the process that it belongs to (an id of process_table) */
    char *path;           /* as the target sees it, without " (deleted)"; "[vdso]"; "[jit]" */
    int fd;               /* open for reading, or -1: gone before it could be opened, or not permitted */

    /* Read from the file when it was added; zero where it is no readable ELF file of this machine's class. */
    bool is_elf;
    uint16_t elf_type; /* ET_EXEC, ET_DYN */
    struct binary_segment *segments;
    size_t segment_count;
    uint64_t eh_frame_hdr_vaddr; /* PT_GNU_EH_FRAME; 0 = none */
    uint64_t eh_frame_hdr_size_bytes;
    uint8_t build_id[BINARY_BUILD_ID_MAX_BYTES];
    size_t build_id_size_bytes; /* 0 = none */

    const uint8_t *image; /* BINARY_VDSO: the bytes; else NULL */
    size_t image_size_bytes;
};

struct binary_table;

struct binary_table *binary_table_create(void);
void binary_table_destroy(struct binary_table *table); /* closes every fd */

/* NULL when it is not there yet. The pointer is valid until the table is destroyed. */
struct binary *binary_table_find(const struct binary_table *table, const struct binary_key *key);
struct binary *binary_table_get(const struct binary_table *table, uint32_t id);
uint32_t binary_table_count(const struct binary_table *table);

/* Adds a file and reads its program headers and build id. Takes ownership of fd (-1 allowed). A broken ELF
 * file is added all the same, with is_elf false. */
struct binary *binary_table_add_file(struct binary_table *table, const struct binary_key *key,
                                     const char *path, int fd);

/* The one vDSO of this kernel, made when first asked for; the JIT memory of a process likewise. */
struct binary *binary_table_vdso(struct binary_table *table);
struct binary *binary_table_jit(struct binary_table *table, uint32_t process);

/* Bytes of the file at a file offset (pread, or the image). Returns how many were read, or -errno (-EBADF
 * without fd). */
ssize_t binary_read(const struct binary *binary, uint64_t offset, void *bytes, size_t size_bytes);

/* File offset <-> ELF virtual address by the program headers; false when no segment holds it. Addresses of a
 * mapping go through its file offset: load biases taken as start - offset are wrong for lld's and mold's
 * files. An executable segment is preferred where page rounding makes two segments hold the same offset. */
bool binary_offset_to_vaddr(const struct binary *binary, uint64_t offset, uint64_t *ret_vaddr);
bool binary_vaddr_to_offset(const struct binary *binary, uint64_t vaddr, uint64_t *ret_offset);

/* The last part of the path; for messages and as the module's name. */
const char *binary_base_name(const struct binary *binary);

#endif
