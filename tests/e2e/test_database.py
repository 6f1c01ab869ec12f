"""The main job: a pool of threads in front of a real PostgreSQL, under load, and what its threads wait for."""

import json
import os
import re
import signal
import subprocess
import time

from harness import Process, Skip, check, check_share, test, test_each_engine

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples")
WORKERS = 16
# Starts a PostgreSQL of its own, says where it is, and stops it when stdin ends.
POSTGRES = r"""
. "$1/postgres.sh"
trap postgres_stop EXIT
postgres_start || exit
printf '{"conninfo": "%s"}\n' "$POSTGRES_CONNINFO"
read -r _
"""


class Postgres(Process):
    def __init__(self):
        super().__init__(["bash", "-c", POSTGRES, "bash", EXAMPLES], stderr=subprocess.DEVNULL)
        line = self.read_line(timeout=40)
        if line is None:
            code = self.wait()
            raise Skip("PostgreSQL is not installed") if code == 77 else RuntimeError(f"PostgreSQL did not start: {code}")
        self.conninfo = line["conninfo"]

    def end(self):
        """Not killed: it has a server to stop and a folder to remove."""
        self.child.stdin.close()
        self.wait()
        self.child.stdout.close()


class Dbserver:
    def __init__(self, t, conninfo):
        path = os.path.join(t.workload_dir, "../../dbserver")
        if not os.path.exists(path):
            raise Skip("the example server was not built: libpq is not here")
        argv = [path, "--db", conninfo, "--workers", str(WORKERS)]
        self.child = subprocess.Popen(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        t.ends(self)
        found = re.match(rb"listening on (\S+)\n", self.child.stdout.readline())
        check(found is not None, "the example server did not start")
        self.address = found.group(1).decode()
        self.pid = self.child.pid

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()
        self.child.stdout.close()


class Load:
    def __init__(self, t, url):
        argv = ["wrk", "-t", "1", "-c", "64", "-d", "60s", url]
        self.child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        t.ends(self)

    def finish(self):
        self.child.send_signal(signal.SIGINT)  # it ends early and says what it measured
        output = self.child.communicate()[0]
        print(output)
        check("Non-2xx" not in output and self.child.returncode == 0, "requests failed")

    def end(self):
        if self.child.poll() is None:
            self.child.terminate()
            self.child.communicate()


def profile_under_load(t, path, duration=3):
    """A profile of the server while it is asked for a path, in all formats."""
    t.need_program("wrk")
    server = Dbserver(t, t.ends(Postgres()).conninfo)
    load = Load(t, f"http://{server.address}{path}")
    time.sleep(1.5)  # until every connection has asked, and each worker has something to do
    result = t.collect("-p", server.pid, duration=duration, formats_wanted="speedscope,folded,svg,pprof")
    load.finish()
    return result


def workers_of(profile):
    workers = [thread for thread in profile.threads if re.fullmatch(r"worker-\d+", thread.info["name"])]
    check(len(workers) == WORKERS, f"{len(workers)} workers among {[thread.name for thread in profile.threads]}")
    return workers


def in_each_format(result):
    """[(format, stacks of all workers)]"""
    pool = "worker-*"
    together = [sample for thread in workers_of(result.profile) for sample in thread.without_gaps().samples]
    return [
        ("speedscope", type(result.profile.all_threads)("speedscope", together)),
        ("folded", result.folded.select(lambda stack: pool in stack)),
        ("pprof", result.pprof.labelled("thread", pool)),
        ("svg", result.svg.stacks().select(lambda stack: pool in stack)),
    ]


def ends_in_wait(stack):
    """In a wait frame; the wait for a CPU on the way back counts too."""
    return stack[-1].startswith("[wait: ") or stack[-1] == "[runnable]"


@test_each_engine
def database_calls_hold_the_pool(t):
    """/time: nearly all of the workers' time is in a stack of start function, handler and PQexec or what it calls (it may
    jump there, and leave no frame), ending in a wait."""
    result = profile_under_load(t, "/time")
    for name, stacks in in_each_format(result):
        waits = stacks.having("worker_main", "handle_time", "query_database").select(ends_in_wait)
        calls = waits.select(lambda stack: "PQexec" in stack or "PQgetResult" in stack)
        check_share(f"{name}: waiting in PQexec", calls, stacks, at_least=0.95)


def by_unix_socket(conninfo):
    """The same database by its socket, and the socket's path."""
    folder = subprocess.check_output(["psql", conninfo, "-Atc", "show unix_socket_directories"], text=True).strip()
    port = re.search(r"port=(\d+)", conninfo).group(1)
    return re.sub(r"host=\S+", f"host={folder}", conninfo), f"{folder}/.s.PGSQL.{port}"


def workers_wait_for(t, conninfo, wait):
    """Nearly all blocked time of the workers is in a wait of that name, and none of it is called idle."""
    server = Dbserver(t, conninfo)
    load = Load(t, f"http://{server.address}/time")
    time.sleep(1.5)
    result = t.collect("-p", server.pid, duration=2, formats_wanted="speedscope,folded,svg,pprof")
    load.finish()
    for name, stacks in in_each_format(result):
        blocked = stacks.select(lambda stack: stack[-1].startswith("[wait: "))
        check_share(f"{name}: {wait}", blocked.select(lambda stack: stack[-1] == wait), blocked, at_least=0.95)
    for worker in workers_of(result.profile):
        in_call = worker.having("query_database")
        check(in_call.state("idle").time() == 0, f"a call of the database is idle:\n{in_call.top()}")


@test
def databases_are_named(t):
    """By address and by the program that serves it, over TCP and over a unix socket."""
    t.need_program("wrk")
    conninfo = t.ends(Postgres()).conninfo
    port = re.search(r"port=(\d+)", conninfo).group(1)
    workers_wait_for(t, conninfo, f"[wait: tcp 127.0.0.1:{port} postgres]")
    other, path = by_unix_socket(conninfo)
    workers_wait_for(t, other, f"[wait: unix {path} postgres]")


def summary_of(t, result):
    """What stallgraph summary says of the profile, as JSON; and that collect said the same at the end."""
    path = f"{result.base}.speedscope.json"
    text = t.stallgraph("summary", path)
    check(text.code == 0 and text.stderr == "", f"summary: {text.code} {text.stderr}")
    check(text.stdout.decode() in result.stderr, f"collect said another thing than summary:\n{text.stdout.decode()}")
    check(text.stdout.count(b"\n") <= 40, f"more than a screen:\n{text.stdout.decode()}")
    as_json = t.stallgraph("summary", path, "--summary", "json")
    check(as_json.code == 0, f"summary: {as_json.code} {as_json.stderr}")
    return json.loads(as_json.stdout)


def verdict_of_kind(summary, kind):
    found = [verdict for verdict in summary["verdicts"] if verdict["kind"] == kind]
    check(len(found) <= 1, f"more than one verdict {kind}: {found}")
    return found[0] if found else None


@test
def starved_pool_is_told(t):
    """/time: 16 workers, 64 connections, and all workers in the database: the verdict names the pool, the wait, the function."""
    result = profile_under_load(t, "/time")
    summary = summary_of(t, result)
    verdict = verdict_of_kind(summary, "pool-starved")
    check(verdict is not None, f"no such verdict: {summary['verdicts']}\n{result.stderr}")
    check(verdict["poolName"] == "worker-*" and verdict["function"] == "query_database", f"{verdict}")
    check(re.fullmatch(r"\[wait: tcp 127\.0\.0\.1:\d+ postgres\]", verdict["waitText"]) is not None, f"{verdict}")
    check(verdict["windowShare"] > 0.5 and verdict["waitShare"] > 0.95, f"{verdict}")
    check(verdict["threadsAtEnd"] == WORKERS and 60 <= verdict["backlog"]["connectionsMean"] <= 70, f"{verdict}")
    pool = summary["pools"][verdict["pool"]]
    check(pool["start"] == "worker_main" and pool["threads"] == WORKERS, f"{pool}")
    peer = summary["peers"][0]
    check(peer["address"] in verdict["waitText"] and 10 < peer["inFlightMean"] <= WORKERS, f"{peer}")


@test
def free_pool_is_not_called_starved(t):
    """/async-time: the same work without a thread for each request, which is told by the connections that await answers."""
    result = profile_under_load(t, "/async-time")
    summary = summary_of(t, result)
    check(verdict_of_kind(summary, "pool-starved") is None, f"{summary['verdicts']}")
    pool = next(pool for pool in summary["pools"] if pool["name"] == "worker-*")
    check(pool["timeNs"]["idle"] > 0.8 * sum(pool["timeNs"].values()), f"{pool}")
    check(summary["peers"][0]["inFlightMean"] > WORKERS, f"{summary['peers']}")


@test
def contended_lock_is_told(t):
    """/lock: one worker computes and the others wait for the one mutex."""
    summary = summary_of(t, profile_under_load(t, "/lock", duration=2))
    verdict = verdict_of_kind(summary, "lock-serialises")
    check(verdict is not None, f"no such verdict: {summary['verdicts']}")
    check(verdict["waitText"] == "[wait: lock cache_mu]" and verdict["function"] == "handle_lock", f"{verdict}")


@test
def idle_workers_are_idle(t):
    """/async-time: the workers wait for work, and that is idle."""
    result = profile_under_load(t, "/async-time", duration=2)
    waiting = [sample for worker in workers_of(result.profile) for sample in worker.waiting().samples]
    stacks = type(result.profile.all_threads)("workers", waiting)
    check_share("idle", stacks.state("idle"), stacks, at_least=0.95)


@test
def locks_within_postgres_are_named(t):
    """PostgreSQL as the target: a backend without a request is idle, one that waits for a row is blocked by a lock."""
    t.need_program("psql")
    conninfo = t.ends(Postgres()).conninfo
    holder, waiter = (t.ends(Session(conninfo)) for _ in range(2))
    holder.say("create table rows (id int); insert into rows values (1); begin; update rows set id = 2;", "UPDATE 1")
    waiter.say("select pg_backend_pid();", "1 row")
    waiter.write("update rows set id = 3;")
    time.sleep(0.5)
    data = subprocess.check_output(["psql", conninfo, "-Atc", "show data_directory"], text=True).strip()
    with open(os.path.join(data, "postmaster.pid")) as file:
        postmaster = file.readline().strip()
    profile = t.collect("-p", postmaster, duration=2).profile
    row = profile.all_threads.having("[wait: lock row]")
    check_share("one thread waits for a row", row.state("blocked"), row, at_least=1)
    check(1.6e9 < row.time() < 2.2e9, f"waits for rows: {row.time() / 1e9} s\n{profile.all_threads.top()}")
    others = profile.all_threads.waiting().select(lambda stack: stack[-1] != "[wait: lock row]")
    check_share("the others are idle", others.state("idle"), others, at_least=0.95)


class Session:
    """psql, fed line by line."""

    def __init__(self, conninfo):
        self.child = subprocess.Popen(["psql", conninfo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def write(self, text):
        self.child.stdin.write(text + "\n")
        self.child.stdin.flush()

    def say(self, text, answer):
        self.write(text)
        while answer not in (line := self.child.stdout.readline()):
            check(line != "", f"psql ended before {answer}")

    def end(self):
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()


@test
def asynchronous_calls_leave_the_pool_free(t):
    """/async-time: the same queries, and the workers wait for work instead."""
    result = profile_under_load(t, "/async-time")
    for name, stacks in in_each_format(result):
        check_share(f"{name}: in PQexec", stacks.having("query_database"), stacks, at_most=0.01)
        free = stacks.having("worker_main", "pthread_cond_wait").select(ends_in_wait)
        check_share(f"{name}: free", free, stacks, at_least=0.9)


@test
def sleeps_hold_the_pool(t):
    """/sleep: no database at all; the wait is a sleep, and says so."""
    result = profile_under_load(t, "/sleep", duration=2)
    for name, stacks in in_each_format(result):
        sleeping = stacks.having("worker_main", "handle_sleep", "[wait: sleep]")
        check_share(f"{name}: asleep", sleeping, stacks, at_least=0.9)


@test
def contended_lock_holds_the_pool(t):
    """/lock: while one worker computes, the others wait for the mutex below the handler."""
    result = profile_under_load(t, "/lock", duration=2)
    for name, stacks in in_each_format(result):
        locked = stacks.having("worker_main", "handle_lock").select(ends_in_wait)
        check_share(f"{name}: waiting for the lock", locked, stacks, at_least=0.6)
