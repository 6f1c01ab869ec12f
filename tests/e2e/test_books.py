"""The books balance: states, lifetimes, the kernel's counters and the formats agree."""

from harness import MS, Counters, check, check_close, test, test_each_engine

FORMATS = "speedscope,folded,svg,pprof"


# Of trace each switch costs a record, stamped a little after the kernel has read its clock for its own count.
TOLERANCES = {"auto": (0.01, 10 * MS), "trace": (0.02, 30 * MS)}


@test_each_engine
def every_thread_balances(t):
    """For each thread: on-CPU and runnable are the kernel's own counts, and all states add up to its lifetime."""
    target = t.workload("mixed_threads")
    counters = t.counters(target.pid)
    profile = t.collect("-p", target.pid, duration=4).profile
    counters.stop()
    steady = set(target.truth.values())
    check(steady <= profile.tids(), f"threads missing: {steady - profile.tids()}")
    for thread in profile.threads:
        check_lifetime(thread, profile)
        if thread.tid in steady:
            check_kernel_counts(thread, *TOLERANCES[t.engine])
            check_against(counters, thread, profile)
    check_brief_threads([thread for thread in profile.threads if thread.tid not in steady])


def check_lifetime(thread, profile):
    label = f"{thread.name}"
    states = thread.without_gaps().time()
    check_close(f"{label}: states and lifetime", states, thread.lifetime, relative=0.01)
    check(sum(thread.times.values()) == states, f"{label}: ledger {thread.times} of {states}")
    lived = thread.info["endNs"] - thread.info["beginNs"]
    check_close(f"{label}: lifetime and birth", lived, thread.lifetime, relative=0.01)
    check(thread.lifetime <= profile.duration_ns, f"{label} lived longer than the window")


def check_kernel_counts(thread, relative, absolute):
    check(thread.kernel_on_cpu is not None, f"{thread.name}: the kernel's counters are not in the file")
    on_cpu = thread.times["on-cpu"]
    check_close(f"{thread.name}: on-CPU", on_cpu, thread.kernel_on_cpu, relative=relative, absolute=absolute)
    check_runnable(thread.name, thread, thread.kernel_runnable, relative, absolute)


def check_brief_threads(threads):
    """Each lives for some 100 ms: together they are held against the kernel's counts, where these were read."""
    counted = [thread for thread in threads if thread.kernel_on_cpu is not None]
    for state, kernel in (("on-cpu", "kernel_on_cpu"), ("runnable", "kernel_runnable")):
        seen = sum(thread.times[state] for thread in counted)
        wanted = sum(getattr(thread, kernel) for thread in counted)
        check_close(f"{len(counted)} brief threads: {state}", seen, wanted, relative=0.1, absolute=80 * MS)


def check_runnable(label, thread, kernel, relative, absolute):
    """The kernel adds a wait for a CPU when it ends: of one that an end of the window cuts it counts nothing, or all."""
    runs = thread.runs()
    cut = sum(length for _, length, stack in {runs[0], runs[-1]} if stack and stack[-1] == "[runnable]")
    seen = thread.state("runnable").time()
    tolerance = max(relative * kernel, absolute)
    print(f"{label}: runnable {seen}, of which {cut} cut, kernel {kernel} (tolerance {tolerance})")
    check(seen - cut <= kernel + tolerance, f"{label}: runnable {seen} without {cut}, the kernel counted {kernel}")
    check(seen >= kernel - tolerance - cut, f"{label}: runnable {seen}, the kernel counted {kernel}")


def check_against(counters: Counters, thread, profile):
    """The same against counters that this test read itself: its readings are some 20 ms apart and interpolated."""
    window = (profile.start_wall_ns, profile.end_wall_ns)
    on_cpu, runnable = counters.between(thread.tid, *window)
    unsure_on_cpu, unsure_runnable = counters.uncertainty(thread.tid, *window)
    label = f"{thread.name}, read here"
    seen = thread.state("on-cpu").time()
    check_close(f"{label}: on-CPU", seen, on_cpu, relative=0.02, absolute=40 * MS + unsure_on_cpu)
    check_runnable(label, thread, runnable, 0.03, 100 * MS + unsure_runnable)  # long waits on a busy machine, cut


def check_totals(result, what):
    """All formats say the same total, to the microsecond."""
    profile, folded, svg, pprof = result.profile, result.folded, result.svg, result.pprof
    threads_us = round(profile.threads_total_ns() / 1000)
    all_us = round(profile.all_threads.time() / 1000)
    check(threads_us > 0, f"{what}: nothing was measured")
    check(all_us == threads_us, f"{what}: all threads {all_us} us, each thread {threads_us} us")
    check(folded.time() // 1000 == threads_us, f"{what}: folded {folded.time() // 1000} us, speedscope {threads_us} us")
    check(svg.total_us() == threads_us, f"{what}: svg {svg.total_us()} us, speedscope {threads_us} us")
    pprof_us = round(pprof.time() / 1000)
    check(pprof_us == threads_us, f"{what}: pprof {pprof_us} us, speedscope {threads_us} us")


@test
def totals_agree_in_all_formats(t):
    target = t.workload("mixed_threads")
    check_totals(t.collect("-p", target.pid, duration=2, formats_wanted=FORMATS), "wall")


@test
def totals_agree_with_filters(t):
    """The same after a filter, and with other groupings of threads."""
    target = t.workload("mixed_threads")
    for options in (("--mode", "on-cpu"), ("--mode", "off-cpu"), ("--threads", "each"), ("--threads", "merge")):
        result = t.collect("-p", target.pid, *options, duration=1, formats_wanted=FORMATS)
        check_totals(result, " ".join(options))


@test_each_engine
def each_stack_agrees_in_all_formats(t):
    """Stack by stack: what speedscope says of all threads is what the folded lines say, and pprof's samples."""
    target = t.workload("mixed_threads")
    options = ("--threads", "merge", "--idle", "merge")
    result = t.collect("-p", target.pid, *options, duration=2, formats_wanted=FORMATS)
    flat = {stack[1:]: ns for stack, ns in result.folded.sums().items()}
    sums = result.profile.all_threads.sums()
    for stack, ns in sums.items():
        check(abs(flat.get(stack, 0) - ns) <= 1000, f"{stack}: folded {flat.get(stack, 0)} ns, speedscope {ns} ns")
    check(set(flat) <= set(sums), f"stacks that only folded has: {set(flat) - set(sums)}")
    check(result.pprof.sums() == sums, f"pprof: {set(result.pprof.sums().items()) ^ set(sums.items())}")


@test
def pprof_labels_agree_with_the_ledgers(t):
    """Thread by thread and state by state, to the nanosecond."""
    target = t.workload("mixed_threads")
    result = t.collect("-p", target.pid, "--threads", "each", duration=1, formats_wanted=FORMATS)
    profile, pprof = result.profile, result.pprof
    ledgers = {str(thread.tid): sum(thread.times.values()) for thread in profile.threads}
    check(pprof.by_label("tid") == {tid: ns for tid, ns in ledgers.items() if ns > 0}, f"{pprof.by_label('tid')}, {ledgers}")
    for state in profile.own["states"]:
        ns = sum(thread.times[state] for thread in profile.threads)
        seen = pprof.by_label("state").get(state, 0)
        check(seen == ns, f"{state}: pprof {seen} ns, ledgers {ns} ns")
    check(str(target.pid) in pprof.by_label("pid"), f"pids {pprof.by_label('pid')}")
    check(sum(pprof.by_label("thread").values()) == pprof.time(), "time of no thread")
    check(any(build_id for _, build_id in modules_of(pprof)), "no build id")


def modules_of(pprof):
    return {module for sample in pprof.profile.samples for module in sample.modules if module}


@test
def idle_modes_change_totals_alike(t):
    """--idle hide leaves the same time out of every format."""
    target = t.workload("mixed_threads")
    for mode in ("hide", "merge", "separate"):
        result = t.collect("-p", target.pid, "--idle", mode, duration=0.8, formats_wanted=FORMATS)
        check_totals(result, f"--idle {mode}")
