# Starts and stops the example server. To be sourced by a bash script, which calls dbserver_stop however it ends.
#
#   dbserver_start build/release/dbserver --db "$POSTGRES_CONNINFO" --workers 16 || exit 1
#   curl "http://$DBSERVER_ADDRESS/time"
#   dbserver_stop
#
# After dbserver_start: DBSERVER_PID and DBSERVER_ADDRESS, such as 127.0.0.1:41213.

DBSERVER_PID=
DBSERVER_LOG=

dbserver_start() {
    local tries

    DBSERVER_LOG=$(mktemp) || return 1
    "$@" >"$DBSERVER_LOG" 2>&1 </dev/null &
    DBSERVER_PID=$!
    for ((tries = 0; tries < 200; tries++)); do
        DBSERVER_ADDRESS=$(sed -n 's/^listening on //p' "$DBSERVER_LOG")
        [ -z "$DBSERVER_ADDRESS" ] || return 0
        kill -0 "$DBSERVER_PID" 2>/dev/null || break
        sleep 0.05
    done
    echo "dbserver did not start:" >&2
    cat "$DBSERVER_LOG" >&2
    return 1
}

# Returns the server's exit code. May be called at any time, also twice.
dbserver_stop() {
    local status=0

    if [ -n "$DBSERVER_PID" ]; then
        kill -TERM "$DBSERVER_PID" 2>/dev/null
        wait "$DBSERVER_PID"
        status=$?
        DBSERVER_PID=
    fi
    if [ -n "$DBSERVER_LOG" ]; then
        rm -f "$DBSERVER_LOG"
        DBSERVER_LOG=
    fi
    return "$status"
}
