"""Time off the CPU: whose it is, how much, and that waiting for a CPU is something else."""

import os
import signal
import time

from harness import MS, NS, check, check_close, check_share, test_each_engine

SOON_S = 3


@test_each_engine
def sleep_since_before_attach(t):
    """Threads that blocked before the attach and never wake are there for the whole window, with their functions or a
    frame that says why not."""
    target = t.workload("blocked_since_start")
    time.sleep(0.3)
    profile = t.collect("-p", target.pid, duration=SOON_S).profile
    for function, tid in target.truth.items():
        thread = profile.thread(tid)
        blocked = thread.waiting()
        check_close(f"{function}: blocked", blocked.time(), profile.duration_ns, relative=0.02)
        check(thread.runs()[0][2] and thread.runs()[-1][2], f"{function}: open at neither end:\n{thread.top()}")
        check(blocked.samples[0][0][-1].startswith("[wait: "), f"{function}: no wait frame:\n{thread.top()}")
        said = blocked.select(lambda s, f=function: f in s or s[0] in ("[blocked before attach]", "[truncated]"))
        check_share(f"{function} is named or said to be unknown", said, blocked, at_least=0.98)


@test_each_engine
def intervals_open_at_the_window_end_count(t):
    """A thread's states add up to its lifetime in the window, also of one that is blocked at its end or exits in it."""
    target = t.workload("thread_lifetimes")
    collect = t.start_collect("-p", target.pid, "-d", 4)
    left_wall_ns = target.read_line()["left_wall_ns"]
    profile = collect.finish().profile
    for name in ("waits", "naps"):
        thread = profile.thread(target.truth[name])
        states = thread.state("on-cpu", "runnable", "blocked", "idle").time()
        check_close(f"{name}: all states", states, profile.duration_ns, relative=0.02)
        check_share(f"{name}: blocked", thread.waiting().time(), states, at_least=0.95)
        named = thread.waiting().select(lambda stack, name=name: name in stack or stack[0] == "[truncated]")
        check_share(f"{name}: stack", named.time(), states, at_least=0.95)
    leaver = profile.thread(target.truth["leaves"])
    lived_ns = profile.offset_of(left_wall_ns)
    check(0 < lived_ns < profile.duration_ns, f"the thread left outside of the window: {lived_ns}")
    check_close("leaves: all states", leaver.without_gaps().time(), lived_ns, relative=0.02, absolute=20 * MS)
    start, length, last = leaver.runs()[-1]
    check(last == (), f"something accrues after the end of the thread: {last}")
    check_close("gap after the end", length, profile.duration_ns - lived_ns, absolute=40 * MS)


@test_each_engine
def gaps_only_outside_of_a_lifetime(t):
    """Threads born and gone within the window: [] before the birth and after the end, and nowhere else."""
    target = t.workload("thread_lifetimes")
    collect = t.start_collect("-p", target.pid, "-d", 4)
    collect.wait_started()
    target.write_line()
    born = target.read_line()
    profile = collect.finish().profile
    for thread in profile.threads:
        shape = [bool(stack) for _, _, stack in thread.runs()]
        inner = "".join("x" if filled else "." for filled in shape).strip(".")
        check("." not in inner and inner, f"thread {thread.name} has a gap within its life: {shape}")
    comer = profile.thread(born["comes"])
    check(comer.runs()[0][2] == (), "no gap before the birth")
    gap_ns = comer.runs()[0][1]
    check_close("gap before the birth", gap_ns, profile.offset_of(born["came_wall_ns"]), absolute=30 * MS)


@test_each_engine
def preempted_hog_is_not_blocked(t):
    """A thread that shares its CPU waits for a CPU, and that is the kernel's run delay."""
    hog, rival = t.workload("busy"), t.workload("busy")
    for process in (hog, rival):
        os.sched_setaffinity(process.pid, {0})
    counters = t.counters(hog.pid)
    profile = t.collect("-p", hog.pid, duration=SOON_S).profile
    counters.stop()
    thread = profile.thread(hog.pid)
    window = (profile.start_wall_ns, profile.end_wall_ns)
    _, runnable = counters.between(hog.pid, *window)
    _, unsure = counters.uncertainty(hog.pid, *window)
    check_share("blocked", thread.waiting().time(), profile.duration_ns, at_most=0.01)
    check(runnable > 0.2 * profile.duration_ns, f"the rival did not compete: {runnable}")
    check_close("runnable", thread.state("runnable").time(), runnable, relative=0.05, absolute=30 * MS + unsure)
    counters.check_on_cpu("on-CPU", thread.state("on-cpu").time(), hog.pid, *window)


@test_each_engine
def sleep_is_not_charged_to_what_ran_last(t):
    """Off-CPU time belongs to the function that sleeps, and is as long as the sleeper measured it."""
    target = t.workload("burn_and_nap")
    profile = t.collect("-p", target.pid, duration=SOON_S).profile
    naps = [line["nap_ns"] for line in target.read_lines_now()]
    thread = profile.thread(target.pid)
    blocked = thread.waiting()
    # The nap that was on when sampling began may be seen without its callers: then it says so.
    nap = blocked.select(lambda stack: "nap" in stack or stack[0] == "[truncated]")
    check_share("nap", nap, blocked, at_least=0.99)
    check(blocked.having("burn").time() == 0, f"burn never sleeps:\n{blocked.top()}")
    check(thread.state("on-cpu").having("burn").time() > 0, f"burn was not seen:\n{thread.top()}")
    # The nap that the window's end cut off has no line yet: a full one is compared, from the first end to the last.
    inside = [(a, b) for a, b in naps if a >= profile.start_wall_ns and b <= profile.end_wall_ns]
    check(len(inside) >= 3, f"only {len(inside)} naps in the window")
    slept = sum(b - a for a, b in inside)
    first, last = profile.offset_of(inside[0][0]), profile.offset_of(inside[-1][1])
    seen = clipped(thread.state("blocked", "idle", "runnable").having("nap"), thread, first, last)
    check_close("asleep", seen, slept, relative=0.02, absolute=20 * MS)


def clipped(selected, thread, begin, end):
    """Time of the selected stacks of a thread within [begin, end)."""
    wanted = {stack for stack, _, _ in selected.samples}
    total = 0
    for start, length, stack in thread.runs():
        if stack in wanted:
            total += max(0, min(start + length, end) - max(start, begin))
    return total


@test_each_engine
def stopped_is_neither_blocked_nor_running(t):
    """SIGSTOP for a second: one second in state stopped, whether the thread ran or slept."""
    hog, sleeper = t.workload("busy"), t.workload("nested_sleep")
    collect = t.start_collect("-p", f"{hog.pid},{sleeper.pid}", "-d", 3.5)
    collect.wait_started()
    began = time.monotonic_ns()
    for process in (hog, sleeper):
        process.signal(signal.SIGSTOP)
    time.sleep(1)
    for process in (hog, sleeper):
        process.signal(signal.SIGCONT)
    stopped_ns = time.monotonic_ns() - began
    profile = collect.finish().profile
    for process in (hog, sleeper):
        thread = profile.thread(process.pid)
        seen_ns = thread.state("stopped").time()
        check_close(f"stopped ({thread.name})", seen_ns, stopped_ns, relative=0.05, absolute=50 * MS)
    check(profile.thread(hog.pid).waiting().time() < 10 * MS, "the hog never blocks")


@test_each_engine
def vfork_waits_in_state_d(t):
    """The parent of a vfork sleeps uninterruptibly; that is blocked time, in a stack that names vfork."""
    target = t.workload("vfork_wait")
    collect = t.start_collect("-p", target.pid, "-d", 3.5)
    collect.wait_started()
    target.write_line()
    begin_ns, end_ns = target.read_line()["vfork_ns"]
    profile = collect.finish().profile
    thread = profile.thread(target.pid)
    waits = thread.waiting().having("waits_for_vfork")
    check_close("blocked in vfork", waits.time(), end_ns - begin_ns, relative=0.05)
    check(any("vfork" in name for name in waits.names() - {"waits_for_vfork"}), f"vfork is not named:\n{waits.top()}")


@test_each_engine
def off_cpu_mode_is_the_same_blocked_time(t):
    """--mode off-cpu leaves out what runs, and nothing else."""
    target = t.workload("burn_and_nap")
    profile = t.collect("-p", target.pid, "--mode", "off-cpu", duration=2).profile
    thread = profile.thread(target.pid)
    check(thread.state("on-cpu").time() == 0, f"on-CPU time in --mode off-cpu:\n{thread.top()}")
    blocked = thread.waiting()
    check(blocked.time() > NS // 4, f"little blocked time:\n{thread.top()}")
    check_share("nap", blocked.select(lambda s: "nap" in s or s[0] == "[truncated]"), blocked, at_least=0.99)
