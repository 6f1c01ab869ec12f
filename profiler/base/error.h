/* What went wrong in the outside world, in one line for a person.
 *
 *   if (fd < 0)
 *       return error_set(err, -errno, "open %s", path);      // "open /x: Permission denied"
 *   return error_hint(err, "run as root, or with CAP_PERFMON"); // "...; run as root, or ..."
 */
#ifndef STALLGRAPH_BASE_ERROR_H
#define STALLGRAPH_BASE_ERROR_H

struct error {
    int code; /* -errno, or 0 when nothing was set */
    char message[768];
};

/* Sets the message from the format; for a negative code ": <strerror>" follows it. Returns code. err may be
 * NULL. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same without the system's text, for a cause that errno does not name. */
int error_say(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Appends "; " and what the user can do about it. Returns err->code, or 0 where err is NULL. */
int error_hint(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
