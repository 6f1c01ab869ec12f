#include "profiler/model/library_code.h"

#include <stddef.h>
#include <string.h>

static bool begins_with_one(const char *text, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

#define BEGINS_WITH_ONE(text, prefixes)                                                                      \
    begins_with_one((text), (prefixes), sizeof(prefixes) / sizeof(prefixes)[0])

bool library_code_is_runtime(const char *name, const char *module)
{
    static const char *const modules[] = {
        "libc.so",   "libc-",  "libpthread", "ld-linux", "ld-musl",   "ld-2",
        "libstdc++", "libc++", "libgcc_s",   "[vdso]",   "libjvm.so", "libcoreclr.so",
    };
    /* In a program that is linked statically, or from headers, the names must tell. */
    static const char *const names[] = {
        "std::",       "__gthread",    "pthread_", "__pthread_", "___pthread_",  "__lll_", "__futex_",
        "futex_",      "start_thread", "clone",    "__clone",    "__libc_start", "_start", "core::",
        "parking_lot", "<std::",       "__GI_",    "syscall",    "void std::",   "absl::",
    };

    return BEGINS_WITH_ONE(module, modules) || BEGINS_WITH_ONE(name, names);
}

bool library_code_is_library(const char *name, const char *module)
{
    static const char *const modules[] = {
        "libpq.",      "libmysqlclient", "libmariadb",   "libhiredis",   "libmongoc", "libsqlite3",
        "libodbc",     "libssl",         "libcrypto",    "libgnutls",    "libgssapi", "libkrb5",
        "libcurl",     "libuv",          "libevent",     "libev.",       "libglib-",  "libgio-",
        "libm.so",     "libresolv",      "libnss_",      "librt.so",     "libz.so",   "libzstd",
        "liblz4",      "libldap",        "librdkafka",   "libgrpc",      "libaio",    "liburing",
        "libnghttp",   "libboost_",      "libapr",       "libpython",    "libruby",   "libclrjit.so",
        "libjava.so",  "libnio.so",      "libnet.so",    "libpcre",      "libicu",    "libjemalloc",
        "libtcmalloc", "libSystem.",     "libcassandra", "libmemcached",
    };
    static const char *const names[] = {
        "PQ",    "pqsecure_", "pqSocket", "pqWait", "mysql_", "mariadb_",
        "redis", "SSL_",      "BIO_",     "curl_",  "uv_",
    };

    return library_code_is_runtime(name, module) || BEGINS_WITH_ONE(module, modules) ||
           (module[0] == '\0' && BEGINS_WITH_ONE(name, names));
}
