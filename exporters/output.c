#include "exporters/output.h"

#include <errno.h>

int output_check(FILE *out, struct error *err)
{
    errno = 0;
    if (fflush(out) == 0 && ferror(out) == 0)
        return 0;
    return error_set(err, errno != 0 ? -errno : -EIO, "write the profile");
}
