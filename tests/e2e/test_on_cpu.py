"""Time on the CPU: as much as the kernel counted, whatever the machine's load."""

import os

from harness import MS, check, check_close, check_share, test


@test
def cpu_time_is_the_kernels_under_load(t):
    """Three hogs share a CPU: count x nominal period would be wrong, the kernel's count is not."""
    hogs = [t.workload("busy") for _ in range(3)]
    for hog in hogs:
        os.sched_setaffinity(hog.pid, {0})
    counters = t.counters(hogs[0].pid)
    profile = t.collect("-p", hogs[0].pid, duration=3).profile
    counters.stop()
    thread = profile.thread(hogs[0].pid)
    on = thread.state("on-cpu")
    counters.check_on_cpu("on-CPU", on.time(), hogs[0].pid, profile.start_wall_ns, profile.end_wall_ns)
    check_share("named", on.with_chain("main", "middle", "hot_leaf"), on, at_least=0.95)


@test
def all_threads_early_and_late(t):
    """Threads that were there before the attach and one that came after it: each with its own CPU time."""
    target = t.workload("late_threads")
    counters = t.counters(target.pid)
    collect = t.start_collect("-p", target.pid, "-d", 4)
    collect.wait_started()
    target.write_line()
    late = target.read_line()["late"]
    profile = collect.finish().profile
    counters.stop()
    for tid in [*target.truth["early"], late]:
        on = profile.thread(tid).state("on-cpu")
        check(on.time() > 100 * MS, f"thread {tid} hardly ran: {on.time()}")
        counters.check_on_cpu(f"thread {tid}: on-CPU", on.time(), tid, profile.start_wall_ns, profile.end_wall_ns)
        check_share(f"thread {tid}: named", on.having("burns"), on, at_least=0.95)
    check(profile.thread(late).having("burns_late").time() > 0, "the late thread's start is not in its stacks")


@test
def on_cpu_mode_leaves_out_the_rest(t):
    """--mode on-cpu: the same CPU time, nothing that waits."""
    target = t.workload("burn_and_nap")
    counters = t.counters(target.pid)
    profile = t.collect("-p", target.pid, "--mode", "on-cpu", duration=2.5).profile
    counters.stop()
    thread = profile.thread(target.pid)
    on = thread.state("on-cpu")
    counters.check_on_cpu("on-CPU", on.time(), target.pid, profile.start_wall_ns, profile.end_wall_ns)
    check(thread.without_gaps().time() == on.time(), f"waits in --mode on-cpu:\n{thread.top()}")
    check_share("burn", on.having("burn"), on, at_least=0.9)


@test
def child_is_as_wide_as_its_share(t):
    """In the drawing: a child with a quarter of its parent's time is a quarter as wide, within its parent."""
    target = t.workload("self_and_child")
    # At 999 Hz: a share of a few hundred samples would be uncertain by some per cent.
    options = ("-d", 3, "-F", 999, "--kernel", "none")
    collect = t.start_collect("-p", target.pid, *options, formats_wanted="speedscope,svg")
    collect.wait_started()
    target.write_line()
    first = target.read_line()
    result = collect.finish()
    target.write_line()
    last = target.read_line()
    share = (last["child_ns"] - first["child_ns"]) / (last["all_ns"] - first["all_ns"])
    on = result.profile.thread(target.pid).state("on-cpu")
    seen = on.having("child").time() / on.having("parent").time()
    check_close("child's share of the time", seen, share, absolute=0.03)
    svg = result.svg
    parents = [frame for frame in svg.frames if frame.label() == "parent"]
    children = [frame for frame in svg.frames if frame.label() == "child"]
    check(parents and children, f"not drawn: {sorted({frame.label() for frame in svg.frames})}")
    widest = max(parents, key=lambda frame: frame.width)
    child = max(children, key=lambda frame: frame.width)
    check(child.inside(widest), f"child {child.x}+{child.width} is not inside {widest.x}+{widest.width}")
    thread = result.profile.thread(target.pid)
    all_states = thread.having("child").time() / thread.having("parent").time()
    check_close("drawn width", child.width / widest.width, all_states, absolute=0.003)
