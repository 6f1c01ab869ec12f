/* A stream that compresses what is written to it into another one, as gzip (RFC 1952). The header has no time
 * stamp and no name, so the same input gives the same bytes.
 *
 *   FILE *packed = gzip_wrap(plain);
 *   exporter->write(profile, &options, packed, &err);
 *   if (fclose(packed) != 0) ...        // finishes the gzip stream; plain stays open
 *   if (fclose(plain) != 0) ...
 */
#ifndef STALLGRAPH_EXPORTERS_GZIP_FILE_H
#define STALLGRAPH_EXPORTERS_GZIP_FILE_H

#include <stdio.h>

/* plain must outlive the returned stream, which is for writing only. Errors of plain come back as errors of
 * the wrapper, by fwrite, fflush or fclose, with errno set. fflush hands on what zlib has ready, not all that
 * was written. NULL with errno where zlib has no memory. */
FILE *gzip_wrap(FILE *plain);

#endif
