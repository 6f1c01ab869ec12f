"""Processes and threads that come, change and go while they are watched."""

import os
import time

import formats
from harness import MS, NS, check, check_close, check_share, test, test_each_engine


@test_each_engine
def target_exit_ends_the_session(t):
    """The target ends long before the duration: so does stallgraph, at once, with everything named and counted."""
    target = t.workload("busy", "2000")
    counters = t.counters(target.pid)
    collect = t.start_collect("-p", target.pid, "-d", 60)
    target.wait()
    ended_ns = time.time_ns()
    result = collect.finish(10)
    # A busy machine may let it wait for a CPU: that is not its fault.
    waited_ns = result.counters.between(collect.pid, ended_ns, time.time_ns())[1]
    after_s = (time.time_ns() - ended_ns - waited_ns) / NS
    counters.stop()
    check(result.code == 0, f"exit code {result.code}")
    check(after_s <= 1.0, f"went on for {after_s:.2f} s after the target's end, {waited_ns / NS:.2f} s of waiting apart")
    profile = result.profile
    on = profile.thread(target.pid).state("on-cpu")
    before, _ = counters.between(target.pid, 0, profile.start_wall_ns)
    used_ns = (target.rusage.ru_utime + target.rusage.ru_stime) * NS - before
    unsure, _ = counters.uncertainty(target.pid, profile.start_wall_ns, profile.start_wall_ns)
    check_close("on-CPU", on.time(), used_ns, relative=0.05, absolute=20 * MS + unsure)
    check_share("named", on.with_chain("main", "middle", "hot_leaf"), on, at_least=0.95)


@test_each_engine
def forked_children_are_included(t):
    """The process and its descendants: those alive at the attach and those forked later."""
    target = t.workload("forked_workers")
    collect = t.start_collect("-p", target.pid, "-d", 3)
    collect.wait_started()
    target.write_line()
    late = target.read_line()["late"]
    profile = collect.finish().profile
    early = target.truth["early"]
    check(profile.tids() == {target.pid, early, late}, f"threads: {profile.tids()}")
    for pid, function in ((early, "early_worker"), (late, "late_worker")):
        on = profile.thread(pid).state("on-cpu")
        check(on.time() > 200 * MS, f"{function} hardly ran: {on.time()}")
        check_share(function, on.having("main", function), on, at_least=0.95)
    check(profile.thread(target.pid).waiting().time() > 2 * NS, "the parent waits")


@test
def children_are_left_out_on_demand(t):
    """--no-children: the named process alone."""
    target = t.workload("forked_workers")
    collect = t.start_collect("-p", target.pid, "--no-children", "-d", 2)
    collect.wait_started()
    target.write_line()
    target.read_line()
    profile = collect.finish().profile
    check(profile.tids() == {target.pid}, f"threads: {profile.tids()}")


@test
def several_processes_at_once(t):
    first, second, other = t.workload("busy"), t.workload("nested_sleep"), t.workload("other_busy")
    profile = t.collect("-p", f"{first.pid},{second.pid}", duration=1.5).profile
    check(profile.tids() == {first.pid, second.pid}, f"threads: {profile.tids()}")
    check(profile.thread(first.pid).having("hot_leaf").time() > 0, "hot_leaf not seen")
    check(profile.thread(second.pid).having("inner_wait").time() > 0, "inner_wait not seen")
    check("wrong_leaf" not in profile.all_threads.names(), f"a stranger's stacks (process {other.pid})")


@test
def latest_thread_name_counts(t):
    """A thread that takes other names: it stays one thread, under its latest name, and no time is lost."""
    target = t.workload("thread_rename")
    counters = t.counters(target.pid)
    collect = t.start_collect("-p", target.pid, "-d", 3, formats_wanted="speedscope,folded")
    collect.wait_started()
    for _ in range(2):
        target.write_line()
        target.read_line()
        time.sleep(0.5)
    result = collect.finish()
    counters.stop()
    profile, tid = result.profile, target.truth["tid"]
    thread = profile.thread(tid)
    check(thread.info["name"] == "name-three", f"name: {thread.info['name']}")
    counters.check_on_cpu("on-CPU", thread.state("on-cpu").time(), tid, profile.start_wall_ns, profile.end_wall_ns)
    check("name-three" in result.folded.names(), f"no pool of that name: {result.folded.top()}")


@test
def target_is_not_harmed(t):
    """Never stopped, never signalled: it runs on, nobody traces it, and nothing of ours stays behind in it."""
    target = t.workload("ping_pong")

    def status():
        with open(f"/proc/{target.pid}/status", encoding="ascii", errors="replace") as file:
            rows = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        return {key: rows[key] for key in ("TracerPid", "SigPnd", "ShdPnd", "SigBlk", "SigCgt", "Threads")}

    before, files = status(), os.listdir(f"/proc/{target.pid}/fd")
    collect = t.start_collect("-p", target.pid, "-d", 2)
    collect.wait_started()
    check(status() == before, f"while sampled: {status()}, before: {before}")
    check(collect.finish().code in (0, 3), "no profile")
    check(status() == before, f"after: {status()}, before: {before}")
    check(os.listdir(f"/proc/{target.pid}/fd") == files, "descriptors changed")
    target.write_line()
    first = target.read_line()["rounds"]
    time.sleep(0.2)
    target.write_line()
    check(target.read_line()["rounds"] > first, "the target stands still")


@test_each_engine
def short_lived_threads_are_counted(t):
    """Threads that are born and die within the window, one after the other: each is there, with its CPU time."""
    target = t.workload("mixed_threads")
    profile = t.collect("-p", target.pid, duration=3).profile
    brief = [thread for thread in profile.threads if thread.info["name"] == "brief"]
    # One that ended as the window began has no time in it.
    inner = [thread for thread in brief if thread.lifetime and thread.runs()[0][2] == () and thread.runs()[-1][2] == ()]
    check(len(inner) >= 8, f"only {len(inner)} of {len(brief)} brief threads lived within the window")
    together = formats.Stacks("brief", [])
    for thread in inner:
        lived = thread.without_gaps().time()
        check(lived > 60 * MS, f"thread {thread.tid} sleeps for 60 ms, but lived {lived} ns")
        check(thread.waiting().time() > 50 * MS, f"its sleep:\n{thread.top()}")
        together.samples += thread.samples
    asleep, running = together.waiting(), together.state("on-cpu").sampled()
    check_share("its sleep is named", asleep.having("lives_briefly"), asleep, at_least=0.85)
    check_share("its work is named", running.having("lives_briefly"), running, at_least=0.8)


@test
def short_lived_children_are_given_their_own_time(t):
    """A process that is found by a look before its fork is told of has not been there since the start."""
    process = t.start(["bash", "-c", "echo '{}'; while :; do /bin/sleep 0.02; done"])
    result = t.collect("-p", process.pid, "--max-loss", 100, "--max-overhead", 0, duration=2)
    profile = result.profile
    alive = sum(thread["lifetimeNs"] for thread in profile.own["threads"])
    print(f"{len(profile.own['threads'])} threads, {alive / NS:.2f} s of lifetimes in {profile.duration_ns / NS:.2f} s")
    check(len(profile.own["threads"]) > 4, "the children are missing")
    # bash, and never more than one child.
    check(alive <= 2.15 * profile.duration_ns, "more time than two processes have")
    lost = sum(thread["lostNs"] for thread in profile.own["threads"])
    # What lives for 20 ms is seen once or twice, some of it still on its way into its sleep.
    check(lost <= 0.1 * alive, f"{lost / alive:.1%} is lost")


@test
def process_without_its_main_thread_is_profiled(t):
    """Its main thread has ended, others run on: it is no zombie."""
    code = (
        "import ctypes, sys, threading, time\n"
        "print('{}', flush=True)\n"
        "threading.Thread(target=lambda: time.sleep(1000)).start()\n"
        "time.sleep(0.1)\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    process = t.start(["/usr/bin/python3", "-c", code])
    time.sleep(0.5)
    result = t.collect("-p", process.pid, duration=1)
    waiting = sum(s[1] for thread in result.profile.threads for s in thread.samples if "[wait" in s[0][-1:][0] if s[0])
    check(waiting > 0.9 * NS, f"{waiting / NS:.2f} s of waiting")


@test
def off_cpu_mode_has_no_loss_of_running_time(t):
    """Time on a CPU that no sample tells of is no loss where it was not asked for."""
    process = t.workload("ping_pong")
    result = t.collect("-p", process.pid, "--mode", "off-cpu", duration=1)
    unsampled = sum(thread["unsampledNs"] for thread in result.profile.own["threads"])
    check(unsampled == 0, f"{unsampled} ns")


@test
def children_that_are_found_by_looking_begin_when_they_began(t):
    """Without records of forks each child is found by a look, always: none of them lived longer than it did."""
    process = t.start(["bash", "-c", "echo '{}'; while :; do /bin/sleep 0.4; done"])
    result = t.collect("-p", process.pid, "--max-overhead", 0, duration=4, wrapper=(t.copy_of("deny_perf"),))
    children = [thread for thread in result.profile.own["threads"] if thread["tid"] != process.pid]
    longest = max(thread["lifetimeNs"] for thread in children)
    print(f"{len(children)} children, the longest for {longest / NS:.2f} s")
    # 0.4 s, and what a busy machine and a clock tick add.
    check(longest <= 0.8 * NS, "a child has more time than it lived")
