/* Reads a profile from a file, gzipped or not, by its content. */
#ifndef STALLGRAPH_EXPORTERS_PROFILE_FILE_H
#define STALLGRAPH_EXPORTERS_PROFILE_FILE_H

#include "profiler/base/error.h"
#include "profiler/model/profile.h"

/* path "-" is stdin. 0, or -errno with err set: -EBADMSG where it is no profile, which says at which byte; -EFBIG
 * where it is more than PROFILE_FILE_MAX_BYTES. The caller destroys the profile. */
int profile_file_read(const char *path, struct profile **ret_profile, struct error *err);

#define PROFILE_FILE_MAX_BYTES (UINT64_C(4) << 30) /* unpacked */

#endif
