#!/bin/bash
# From a fresh Debian to a first profile: builds stallgraph and the example server, starts them with a PostgreSQL of
# their own, puts the server under load and takes a profile of it. Stops all it started, also on Ctrl-C.
set -u
cd "$(dirname "$0")/.." || exit 1
. examples/packages.sh
. examples/postgres.sh
. examples/dbserver.sh

usage() {
    cat <<'END'
usage: examples/quickstart.sh [PATH] [--seconds N] [--connections N] [--workers N]
  PATH             what the load asks for: /time (default), /async-time, /mixed, /sleep, /cpu, /lock
  --seconds N      how long to profile (10)
  --connections N  connections of the load (100)
  --workers N      threads of the server (16)
The profile is left in quickstart-out/.
END
}

# Needed to build the profiler, to build the example, and to run the example.
PACKAGES=(gcc libc6-dev cmake ninja-build pkg-config clang bpftool libbpf-dev libunwind-dev libdw-dev libelf-dev
    libcjson-dev libyajl-dev libiberty-dev zlib1g-dev liblzma-dev libcmocka-dev
    libpq-dev
    postgresql wrk)

path=/time
seconds=10
connections=100
workers=16
while [ $# -gt 0 ]; do
    case "$1" in
    -h | --help) usage; exit 0 ;;
    --seconds | --connections | --workers)
        case "${2-}" in
        '' | *[!0-9]* | 0*) echo "quickstart: $1 wants a number above 0" >&2; usage >&2; exit 2 ;;
        esac
        declare "${1#--}=$2"
        shift ;;
    /time | /async-time | /mixed | /sleep | /cpu | /lock) path=$1 ;;
    *) echo "quickstart: unknown argument $1" >&2; usage >&2; exit 2 ;;
    esac
    shift
done

load_pid=
profiler_pid=
load_log=

# Ends the profiler, which writes what it has. Under sudo the profiler is a child of the process that was started, and
# sudo does not pass on a signal that comes from its own process group.
stop_profiler() {
    local pid=$profiler_pid child

    [ -n "$pid" ] || return 0
    while read -r child _ <"/proc/$pid/task/$pid/children" && [ -n "$child" ]; do
        pid=$child
    done 2>/dev/null
    as_root kill -TERM "$pid" 2>/dev/null
    wait "$profiler_pid"
    profiler_pid=
    own_output
}

# What sudo wrote belongs to root.
own_output() {
    [ "$(id -u)" -eq 0 ] || sudo find quickstart-out -user root -exec chown "$(id -u):$(id -g)" {} +
}

stop_all() {
    trap '' INT TERM # what is being stopped must not be left half stopped
    stop_profiler
    if [ -n "$load_pid" ]; then
        kill -TERM "$load_pid" 2>/dev/null
        wait "$load_pid" 2>/dev/null
    fi
    dbserver_stop
    # PostgreSQL, and what was started so shortly before a signal that its pid is not in its variable yet.
    local pid
    for pid in $(jobs -p); do
        kill -INT "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    done
    postgres_stop
    [ -z "$load_log" ] || rm -f "$load_log"
}
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

step() {
    printf '\n== %s\n' "$*"
}

step "packages and build"
packages_install "${PACKAGES[@]}" || exit 1
cmake --preset release >/dev/null || exit 1
cmake --build build/release --target stallgraph dbserver || exit 1

PROFILER=(build/release/stallgraph)
if [ "$(id -u)" -ne 0 ]; then
    echo "Seeing what other threads do, and in the kernel too, takes privileges: stallgraph is run by sudo."
    sudo -v || exit 1
    PROFILER=(sudo build/release/stallgraph)
fi

step "a PostgreSQL and the example server with $workers workers"
postgres_start || exit 1
dbserver_start build/release/dbserver --db "$POSTGRES_CONNINFO" --workers "$workers" || exit 1
echo "PostgreSQL on port $POSTGRES_PORT (pid $POSTGRES_PID), dbserver on $DBSERVER_ADDRESS (pid $DBSERVER_PID)"

step "load on $path by $connections connections, and $seconds s of profile"
mkdir -p quickstart-out || exit 1
base=quickstart-out/${path#/}
rm -f "$base.speedscope.json" "$base.folded" "$base.svg"
load_log=$(mktemp) || exit 1
load=(wrk --threads 2 --connections "$connections" --latency "http://$DBSERVER_ADDRESS$path")
"${load[@]}" --duration 3s >/dev/null # opens the connections to the database
"${load[@]}" --duration "$((seconds + 2))s" >"$load_log" 2>&1 & # two seconds for the profiler to attach
load_pid=$!
# In the background with wait, since bash runs its traps at once only then; and by set -m in a process group of its
# own, where Ctrl-C does not reach it: the signal of stop_profiler would be its second one, which ends it unwritten.
set -m
"${PROFILER[@]}" collect -p "$DBSERVER_PID" -d "$seconds" --format speedscope,folded,svg -o "$base" &
profiler_pid=$!
set +m
wait "$profiler_pid"
profiler_status=$?
profiler_pid=
wait "$load_pid"
load_status=$?
load_pid=

if [ "$load_status" -ne 0 ]; then
    echo "wrk failed:" >&2
    cat "$load_log" >&2
    exit 1
fi
# 3: a profile was written, but much of it is loss, as the profiler has said.
if [ "$profiler_status" -ne 0 ] && [ "$profiler_status" -ne 3 ]; then
    echo "quickstart: stallgraph collect ended with code $profiler_status" >&2
    exit 1
fi
own_output

step "what wrk measured (profiler attached)"
grep -E 'Latency|Req/Sec| 50%| 99%|Requests/sec|Non-2xx|Socket errors' "$load_log"

step "where $path spends its time"
awk -f examples/largest_waits.awk "$base.folded" || exit 1
echo
echo "$PWD/$base.speedscope.json   open it at https://www.speedscope.app"
echo "$PWD/$base.svg   open it in a browser"
echo "$PWD/$base.folded"
exit "$profiler_status"
