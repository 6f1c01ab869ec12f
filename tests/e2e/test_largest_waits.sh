#!/bin/bash
# The table of largest waits that the quick start prints, on a folded profile with known sums.
set -u
cd "$(dirname "$0")/../.." || exit 1

waits() {
    awk -f examples/largest_waits.awk
}

expected='the largest waits, of 10.0 s of thread time:
   50.0 %      5.00 s  [wait: tcp 127.0.0.1:5432 postgresql]
   15.0 %      1.50 s  [wait: lock cache_mu]
    4.0 %      0.40 s  [wait: sleep]
    0.6 %      0.06 s  [wait: disk read]
    0.3 %      0.03 s  [wait: disk write]
   10.0 %      1.00 s  threads that only wait for work'
got=$(waits <<'END'
[idle];dbserver;acceptor;acceptor_main;[wait: epoll] 1000000
dbserver;worker-*;worker_main;handle_time;PQexec;[wait: tcp 127.0.0.1:5432 postgresql] 4000000
dbserver;worker-*;worker_main;handle_mixed;PQexec;[wait: tcp 127.0.0.1:5432 postgresql] 1000000
dbserver;worker-*;worker_main;handle_lock;[wait: lock cache_mu] 1500000
dbserver;worker-*;worker_main;operator new;hash 12 2000000
dbserver;worker-*;worker_main;[wait: sleep] 400000
dbserver;worker-*;worker_main;[wait: disk read] 60000
dbserver;worker-*;worker_main;[wait: disk write] 30000
dbserver;worker-*;worker_main;[wait: child] 9999
dbserver;worker-*;worker_main;[wait: child];not the last frame 1
END
)
if [ "$got" != "$expected" ]; then
    diff <(echo "$expected") <(echo "$got")
    exit 1
fi
[ "$(waits </dev/null)" = 'no thread time in this profile' ] || { echo "FAIL: an empty profile"; exit 1; }
echo "ok"
