#include "profiler/wait/driver.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Native clients, by the name of their library up to ".so" or a version. */
static const struct {
    const char *library;
    struct driver driver;
} libraries[] = {
    {"libpq", {"postgresql", false}},       {"libmysqlclient", {"mysql", false}},
    {"libmariadb", {"mariadb", false}},     {"libhiredis", {"redis", false}},
    {"libvalkey", {"valkey", false}},       {"libmemcached", {"memcached", false}},
    {"libmongoc", {"mongodb", false}},      {"libsqlite3", {"sqlite", false}},
    {"libcassandra", {"cassandra", false}}, {"libclntsh", {"oracle", false}},
    {"libsybdb", {"sqlserver", false}},     {"libct", {"sqlserver", false}},
    {"libtdsodbc", {"sqlserver", false}},   {"libmsodbcsql", {"sqlserver", false}},
    {"psqlodbc", {"postgresql", false}},    {"libodbc", {"odbc", false}},
    {"librdkafka", {"kafka", false}},       {"librabbitmq", {"rabbitmq", false}},
};

/* Managed clients, by a part of the names that their methods have in perf maps. */
static const struct {
    const char *part;
    struct driver driver;
} names[] = {
    {"Npgsql.", {"postgresql", true}},
    {"MySqlConnector.", {"mysql", true}},
    {"MySql.Data.", {"mysql", true}},
    {"Microsoft.Data.SqlClient.", {"sqlserver", true}},
    {"System.Data.SqlClient.", {"sqlserver", true}},
    {"Microsoft.Data.Sqlite.", {"sqlite", true}},
    {"Oracle.ManagedDataAccess.", {"oracle", true}},
    {"MongoDB.Driver.", {"mongodb", true}},
    {"StackExchange.Redis.", {"redis", true}},
    {"org.postgresql.", {"postgresql", true}},
    {"com.mysql.cj.", {"mysql", true}},
    {"org.mariadb.jdbc.", {"mariadb", true}},
    {"com.microsoft.sqlserver.jdbc.", {"sqlserver", true}},
    {"oracle.jdbc.", {"oracle", true}},
    {"com.mongodb.", {"mongodb", true}},
    {"redis.clients.jedis.", {"redis", true}},
    {"io.lettuce.core.", {"redis", true}},
    {"/node_modules/pg/", {"postgresql", true}},
    {"/node_modules/mysql2/", {"mysql", true}},
    {"/node_modules/mongodb/", {"mongodb", true}},
    {"/node_modules/ioredis/", {"redis", true}},
};

/* "libpq" in "libpq.so.5.15" and "libmongoc-1.0.so.0", not in "libpqxx-6.4.so". */
static bool is_library(const char *module, const char *library)
{
    size_t length = strlen(library);
    char next;

    if (strncmp(module, library, length) != 0)
        return false;
    next = module[length];
    return next == '\0' || next == '.' || (next == '-' && isdigit((unsigned char)module[length + 1])) ||
           isdigit((unsigned char)next);
}

/* At the beginning of a name or of a part of it, so that "MyNpgsql.X" does not count. */
static bool has_part(const char *name, const char *part)
{
    for (const char *at = strstr(name, part); at != NULL; at = strstr(at + 1, part))
        if (at == name || part[0] == '/' ||
            !(isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.'))
            return true;
    return false;
}

const struct driver *driver_of_frame(const char *module, const char *name)
{
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (is_library(module, libraries[i].library))
            return &libraries[i].driver;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (has_part(name, names[i].part))
            return &names[i].driver;
    return NULL;
}

void driver_tag_wait(const char *wait_text, const struct driver *driver, char *ret_text, size_t size)
{
    size_t length = strlen(wait_text);

    if (length > 0 && wait_text[length - 1] == ']')
        length--;
    snprintf(ret_text, size, "%.*s, database: %s]", (int)length, wait_text, driver->service);
}
