# A PostgreSQL server of one's own for a while: fresh data in a new folder, on a free port of 127.0.0.1. To be sourced
# by a bash script, which calls postgres_stop however it ends.
#
#   postgres_start || exit 1
#   psql "$POSTGRES_CONNINFO" -c 'SELECT 1'
#   postgres_stop
#
# After postgres_start: POSTGRES_PID, POSTGRES_PORT, POSTGRES_CONNINFO, and POSTGRES_FOLDER with data/, the socket and
# the file log. postgres_start returns 1 after a line on stderr, and 77 when no PostgreSQL is installed.

POSTGRES_PID=
POSTGRES_FOLDER=

# The folder of initdb and postgres: that of the newest version where Debian puts them, else that of the PATH.
postgres_find_programs() {
    local found

    found=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
    [ -x "$found" ] || found=$(command -v initdb) || return 1
    POSTGRES_PROGRAMS=$(dirname "$(readlink -f "$found")")
}

postgres_start() {
    if ! postgres_find_programs; then
        echo "postgres.sh: no initdb was found: PostgreSQL is not installed" >&2
        return 77
    fi
    # PostgreSQL refuses to run as root. A prefix, not a function: setpriv then becomes the server, so that the pid is
    # known.
    POSTGRES_AS=()
    if [ "$(id -u)" -eq 0 ]; then
        POSTGRES_AS=(setpriv --reuid postgres --regid postgres --init-groups)
    fi
    POSTGRES_FOLDER=$(mktemp -d /tmp/postgres.XXXXXX) || return 1 # short: a socket's path holds 107 bytes
    [ "$(id -u)" -ne 0 ] || chown postgres: "$POSTGRES_FOLDER"
    if ! (cd "$POSTGRES_FOLDER" &&
        "${POSTGRES_AS[@]}" "$POSTGRES_PROGRAMS/initdb" --pgdata="$POSTGRES_FOLDER/data" --username=stallgraph \
            --auth=trust --no-locale --encoding=UTF8 --no-sync >"$POSTGRES_FOLDER/initdb.log" 2>&1); then
        cat "$POSTGRES_FOLDER/initdb.log" >&2
        return 1
    fi

    local attempt status
    for attempt in 1 2 3 4 5; do
        # Below the ports that the kernel gives to clients; one that is taken anyway ends the attempt.
        POSTGRES_PORT=$((20000 + (RANDOM * 32768 + RANDOM) % 12000))
        postgres_try_port
        status=$?
        [ "$status" -eq 2 ] || break
    done
    [ "$status" -eq 0 ] || { cat "$POSTGRES_FOLDER/log" >&2; return 1; }
    POSTGRES_CONNINFO="host=127.0.0.1 port=$POSTGRES_PORT user=stallgraph dbname=postgres sslmode=disable"
    POSTGRES_CONNINFO+=" gssencmode=disable"
}

# Starts the server on POSTGRES_PORT and waits until it answers. Returns 2 when the port is taken, 1 on other failures.
postgres_try_port() {
    local tries

    cd "$POSTGRES_FOLDER" || return 1
    "${POSTGRES_AS[@]}" "$POSTGRES_PROGRAMS/postgres" -D "$POSTGRES_FOLDER/data" -p "$POSTGRES_PORT" \
        -c listen_addresses=127.0.0.1 -c unix_socket_directories="$POSTGRES_FOLDER" -c max_connections=300 \
        -c fsync=off -c logging_collector=off -c lc_messages=C >"$POSTGRES_FOLDER/log" 2>&1 </dev/null &
    POSTGRES_PID=$!
    cd "$OLDPWD" || return 1
    for ((tries = 0; tries < 300; tries++)); do
        # By the socket in the folder, which is surely ours; postgres opens it after the port.
        if "$POSTGRES_PROGRAMS/pg_isready" -q -h "$POSTGRES_FOLDER" -p "$POSTGRES_PORT" -d postgres; then
            return 0
        fi
        if ! kill -0 "$POSTGRES_PID" 2>/dev/null; then
            wait "$POSTGRES_PID"
            POSTGRES_PID=
            grep -q 'could not bind' "$POSTGRES_FOLDER/log" && return 2
            return 1
        fi
        sleep 0.1
    done
    echo "postgres.sh: the server did not answer within 30 s" >&2
    return 1
}

# Ends the server and removes its folder. May be called at any time, also twice.
postgres_stop() {
    if [ -n "$POSTGRES_PID" ]; then
        kill -INT "$POSTGRES_PID" 2>/dev/null # a "fast" shutdown: does not wait for clients
        wait "$POSTGRES_PID" 2>/dev/null
        POSTGRES_PID=
    fi
    if [ -n "$POSTGRES_FOLDER" ]; then
        rm -rf "$POSTGRES_FOLDER"
        POSTGRES_FOLDER=
    fi
}
