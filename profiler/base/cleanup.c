#include "profiler/base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void cleanup_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

void cleanup_close(const int *fd)
{
    int saved_errno = errno;

    if (*fd >= 0)
        close(*fd);
    errno = saved_errno;
}

void cleanup_fclose(void *pointer_to_file)
{
    FILE *file = *(FILE **)pointer_to_file;

    if (file != NULL)
        fclose(file);
}

void cleanup_closedir(void *pointer_to_dir)
{
    DIR *dir = *(DIR **)pointer_to_dir;

    if (dir != NULL)
        closedir(dir);
}
