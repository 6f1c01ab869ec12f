/* Locals that release themselves at the end of their scope.
 *
 *   AUTO_FREE char *path = string_format("/proc/%d/maps", pid);
 *   AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
 *
 * To keep one beyond its scope, copy it out and set the local to NULL (or -1). */
#ifndef STALLGRAPH_BASE_CLEANUP_H
#define STALLGRAPH_BASE_CLEANUP_H

void cleanup_free(void *pointer_to_pointer);
void cleanup_close(const int *fd); /* negative: nothing to do; errno is kept */
void cleanup_fclose(void *pointer_to_file);
void cleanup_closedir(void *pointer_to_dir);

#define AUTO_FREE __attribute__((cleanup(cleanup_free)))
#define AUTO_CLOSE __attribute__((cleanup(cleanup_close)))
#define AUTO_FCLOSE __attribute__((cleanup(cleanup_fclose)))
#define AUTO_CLOSEDIR __attribute__((cleanup(cleanup_closedir)))

#endif
