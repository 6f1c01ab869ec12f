#!/bin/bash
# The example server against a real PostgreSQL: every path answers, and /async-time does not starve the pool.
#   test_dbserver.sh PATH-OF-DBSERVER
set -u
cd "$(dirname "$0")/../.." || exit 1
. examples/postgres.sh
. examples/dbserver.sh

trap 'dbserver_stop; postgres_stop' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

postgres_start
status=$?
[ "$status" -ne 77 ] || { echo "skipped: PostgreSQL is not installed"; exit 77; }
[ "$status" -eq 0 ] || exit 1
dbserver_start "$1" --db "$POSTGRES_CONNINFO" --workers 4 --async-connections 60 || exit 1

python3 tests/e2e/dbserver_client.py "$DBSERVER_ADDRESS" "$DBSERVER_PID" || exit 1

# With requests in flight and connections open, it ends at once and well.
python3 -c '
import socket, sys, time
host, port = sys.argv[1].split(":")
held = [socket.create_connection((host, int(port))) for _ in range(20)]
for s in held:
    s.sendall(b"GET /time HTTP/1.1\r\n\r\nGET /async-ti")
time.sleep(5)' "$DBSERVER_ADDRESS" &
client=$!
sleep 0.5
dbserver_stop
status=$?
kill "$client" 2>/dev/null
wait "$client" 2>/dev/null
[ "$status" -eq 0 ] || { echo "FAIL: exit code $status after SIGTERM"; exit 1; }
echo "ok: clean end on SIGTERM"
