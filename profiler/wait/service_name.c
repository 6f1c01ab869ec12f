#include "profiler/wait/service_name.h"

#include <stdio.h>
#include <string.h>

static const struct {
    uint16_t port;
    const char *name;
} ports[] = {
    {22, "ssh"},
    {25, "smtp"},
    {53, "dns"},
    {80, "http"},
    {88, "kerberos"},
    {110, "pop3"},
    {111, "rpcbind"},
    {143, "imap"},
    {389, "ldap"},
    {443, "https"},
    {587, "smtp"},
    {636, "ldaps"},
    {853, "dns"},
    {993, "imap"},
    {1433, "sqlserver"},
    {1521, "oracle"},
    {1883, "mqtt"},
    {2049, "nfs"},
    {2181, "zookeeper"},
    {2379, "etcd"},
    {3306, "mysql"},
    {3389, "rdp"},
    {4222, "nats"},
    {4317, "opentelemetry"},
    {4318, "opentelemetry"},
    {5432, "postgresql"},
    {5433, "postgresql"},
    {5671, "amqp"},
    {5672, "amqp"},
    {6379, "redis"},
    {6380, "redis"},
    {6432, "pgbouncer"},
    {6650, "pulsar"},
    {7000, "cassandra"},
    {7687, "neo4j"},
    {8080, "http"},
    {8086, "influxdb"},
    {8123, "clickhouse"},
    {8443, "https"},
    {8500, "consul"},
    {8883, "mqtt"},
    {9000, "clickhouse"},
    {9042, "cassandra"},
    {9092, "kafka"},
    {9200, "elasticsearch"},
    {9300, "elasticsearch"},
    {11211, "memcached"},
    {26257, "cockroachdb"},
    {26379, "redis"},
    {27017, "mongodb"},
    {33060, "mysql"},
    {50000, "db2"},
};

static const struct {
    const char *name;
    const char *database;
} databases[] = {
    {"postgresql", "postgresql"},
    {"postgres", "postgresql"},
    {"pgbouncer", "postgresql"},
    {"pgpool", "postgresql"},
    {"mysql", "mysql"},
    {"mysqld", "mysql"},
    {"mariadb", "mysql"},
    {"mariadbd", "mysql"},
    {"redis", "redis"},
    {"redis-server", "redis"},
    {"valkey", "redis"},
    {"valkey-server", "redis"},
    {"keydb-server", "redis"},
    {"dragonfly", "redis"},
    {"memcached", "memcached"},
    {"mongodb", "mongodb"},
    {"mongod", "mongodb"},
    {"mongos", "mongodb"},
    {"sqlserver", "sqlserver"},
    {"sqlservr", "sqlserver"},
    {"oracle", "oracle"},
    {"tnslsnr", "oracle"},
    {"db2", "db2"},
    {"db2sysc", "db2"},
    {"cassandra", "cassandra"},
    {"scylla", "cassandra"},
    {"clickhouse", "clickhouse"},
    {"clickhouse-serv", "clickhouse"},
    {"cockroach", "cockroachdb"},
    {"cockroachdb", "cockroachdb"},
    {"elasticsearch", "elasticsearch"},
    {"influxdb", "influxdb"},
    {"influxd", "influxdb"},
    {"neo4j", "neo4j"},
    {"etcd", "etcd"},
    {"sqlite", "sqlite"},
    {"odbc", "odbc"},
    {"kafka", "kafka"},
    {"rabbitmq", "amqp"},
    {"amqp", "amqp"},
};

const char *service_name_of_port(uint16_t port)
{
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
        if (ports[i].port == port)
            return ports[i].name;
    return NULL;
}

const char *service_database(const char *name)
{
    for (size_t i = 0; i < sizeof databases / sizeof databases[0]; i++)
        if (strcmp(databases[i].name, name) == 0)
            return databases[i].database;
    return NULL;
}

static const char *skip_word(const char *text, const char *word)
{
    size_t length = strlen(word);

    return strncmp(text, word, length) == 0 ? text + length : text;
}

/* An address holds no space; a path may, and then its rest would be taken for the service: which begins
 * behind the last one. */
void service_of_wait(const char *wait_text, char *ret_name, size_t size)
{
    static const char *const protocols[] = {"tcp ", "udp ", "unix ", "sctp "};
    const char *at = skip_word(skip_word(skip_word(wait_text, "[wait: "), "send "), "connect ");
    const char *after = at;
    const char *end;
    const char *space;

    ret_name[0] = '\0';
    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0] && after == at; i++)
        after = skip_word(at, protocols[i]);
    end = strstr(after, ", database: ");
    if (end == NULL)
        end = after + strlen(after) - (after[0] != '\0' && after[strlen(after) - 1] == ']');
    space = memrchr(after, ' ', (size_t)(end - after));
    if (after == at || space == NULL)
        return;
    snprintf(ret_name, size, "%.*s", (int)(end - space - 1), space + 1);
}
