"""What each set of rights buys: whatever is permitted, there is a profile whose amounts are the kernel's, and one line that
says which way it was taken."""

import json
import os
import random
import re
import subprocess
import time

from harness import MS, NOBODY, WITHOUT_BPF, Skip, check, check_close, check_share, test

USER = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
CPU_WIDE = r"on-CPU: (cycles|cpu-clock) at 99 Hz, CPU-wide"
PER_TASK = r"on-CPU: (cycles|cpu-clock) at 99 Hz, per task"
NO_STACKS = r"on-CPU: amounts from schedstat, stacks not permitted"
ON_CPU_REFUSED = "[on-cpu: stack not permitted]"
BLOCKED_REFUSED = "[blocked: stack not permitted]"


def with_capabilities(*names):
    wanted = ",".join("+" + name for name in names)
    return (*USER, "--inh-caps", wanted, "--ambient-caps", wanted)


def need_capability(name):
    """setpriv must know it, and this process must have it to give."""
    done = subprocess.run([*with_capabilities(name), "true"], capture_output=True, check=False)
    if done.returncode != 0:
        raise Skip(f"the capability {name} cannot be given")


class Paranoid:
    """Another perf_event_paranoid for a while."""

    def __init__(self, value):
        self.value = value
        self.before = None

    def __enter__(self):
        with open(PARANOID, encoding="ascii") as file:
            self.before = file.read()
        self._write(str(self.value))

    def __exit__(self, *ignored):
        self._write(self.before)

    @staticmethod
    def _write(text):
        with open(PARANOID, "w", encoding="ascii") as file:
            file.write(text)


def prepare(t):
    t.need_root()
    t.need_program("setpriv")
    t.binary = t.binary_for_nobody()
    folder = t.path("nobody")
    if not os.path.exists(folder):
        os.mkdir(folder)
        os.chown(folder, NOBODY, NOBODY)
    return f"{folder}/out.speedscope.json"


def start_target(t, *arguments, user=False, name="burn_and_nap"):
    program = t.copy_of(name)
    os.chmod(program, 0o755)
    return t.start([*(USER if user else ()), program, *arguments])


def off_cpu_between(thread, begin, end):
    """Time of a thread within [begin, end) of the profile: (blocked, runnable)."""
    at, blocked, runnable = 0, 0, 0
    for _, ns, state in thread.samples:
        part = max(0, min(at + ns, end) - max(at, begin))
        blocked += part if state in ("blocked", "idle") else 0
        runnable += part if state == "runnable" else 0
        at += ns
    return blocked, runnable


def check_books(target, profile, counters):
    """States make a lifetime, on-CPU is the kernel's count, blocked is what the workload measured of its naps."""
    thread = profile.thread(target.pid)
    check_close("all states", thread.without_gaps().time(), profile.duration_ns, relative=0.01)
    on_cpu = thread.state("on-cpu").time()
    check(on_cpu > 0, f"never on a CPU:\n{thread.top()}")
    check_close("on-CPU", on_cpu, thread.kernel_on_cpu, relative=0.01, absolute=10 * MS)
    counters.check_on_cpu(
        "on-CPU, read here", on_cpu, target.pid, profile.start_wall_ns, profile.end_wall_ns, absolute=10 * MS
    )
    naps = [line["nap_ns"] for line in target.read_lines_now()]
    inside = [(a, b) for a, b in naps if a >= profile.start_wall_ns and b <= profile.end_wall_ns]
    check(len(inside) >= 3, f"only {len(inside)} naps in the window")
    slept = sum(b - a for a, b in inside)
    first, last = profile.offset_of(inside[0][0]), profile.offset_of(inside[-1][1])
    blocked, runnable = off_cpu_between(thread, first, last)
    print(f"slept {slept}, blocked {blocked}, runnable {runnable}")
    tolerance = max(0.02 * slept, 20 * MS)
    check(blocked <= slept + tolerance, f"blocked for {blocked}, slept for {slept}")
    check(blocked + runnable >= slept - tolerance, f"blocked for {blocked}, runnable for {runnable}, slept for {slept}")


def check_line(result, on_cpu, blocked):
    lines = result.stderr.splitlines()
    check(lines and re.match(on_cpu, lines[0]), f"not taken as expected: {lines[:1]}, wanted {on_cpu}")
    check(f"blocked: {blocked}" in lines[0], f"not taken as expected: {lines[0]}, wanted {blocked}")


def run_row(t, output, target, wrapper, on_cpu, blocked):
    """One row of the table; returns its thread."""
    counters = t.counters(target.pid)
    result = t.collect("-p", target.pid, duration=3, wrapper=wrapper, output=output, expect=(0,))
    counters.stop()
    check_line(result, on_cpu, blocked)
    check_books(target, result.profile, counters)
    check(target.alive(), "the target is gone")
    return result.profile.thread(target.pid)


def check_on_cpu_names(thread):
    on = thread.state("on-cpu").sampled()
    check_share("on-CPU stacks are named", on.having("main", "burn"), on, at_least=0.9)


def check_blocked_names(thread, *names, at_least=0.95):
    blocked = thread.waiting()
    check_share(f"blocked stacks have {names}", blocked.having(*names, "[wait: sleep]"), blocked, at_least=at_least)


def check_refused(stacks, frame):
    check_share(f"{frame}", stacks.select(lambda stack: frame in stack), stacks, at_least=0.99)


@test
def root_has_everything(t):
    t.need_root()
    output = prepare(t)
    thread = run_row(t, output, start_target(t), (), CPU_WIDE + ", filtered in the kernel", "tick (BPF)")
    check_on_cpu_names(thread)
    check_blocked_names(thread, "main", "nap", "truth_sleep_ms")


@test
def bpf_and_perfmon_are_as_good_as_root(t):
    """CAP_BPF and CAP_PERFMON alone, on a process of root."""
    output = prepare(t)
    need_capability("bpf")
    wrapper = with_capabilities("bpf", "perfmon")
    thread = run_row(t, output, start_target(t), wrapper, CPU_WIDE + ", filtered in the kernel", "tick (BPF)")
    check_on_cpu_names(thread)
    check_blocked_names(thread, "main", "nap", "truth_sleep_ms")


@test
def perfmon_with_rights_over_the_target(t):
    """CAP_PERFMON, CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH: blocked stacks from /proc."""
    output = prepare(t)
    need_capability("perfmon")
    wrapper = with_capabilities("perfmon", "sys_ptrace", "dac_read_search")
    thread = run_row(t, output, start_target(t), wrapper, CPU_WIDE, "tick (/proc)")
    check_on_cpu_names(thread)
    check_blocked_names(thread, "truth_sleep_ms")


@test
def perfmon_without_rights_over_the_target(t):
    """CAP_PERFMON alone: on-CPU stacks, but of blocked threads the state only."""
    output = prepare(t)
    need_capability("perfmon")
    thread = run_row(t, output, start_target(t), with_capabilities("perfmon"), CPU_WIDE, "tick (/proc)")
    check_on_cpu_names(thread)
    check_refused(thread.waiting(), BLOCKED_REFUSED)


def own_process(t, paranoid):
    output = prepare(t)
    with Paranoid(paranoid):
        target = start_target(t, user=True)
        counters = t.counters(target.pid)
        result = t.collect("-p", target.pid, duration=3, wrapper=USER, output=output, expect=(0,))
        counters.stop()
    check_books(target, result.profile, counters)
    thread = result.profile.thread(target.pid)
    check_blocked_names(thread, "truth_sleep_ms")
    return result, thread


@test
def own_process_paranoid_2(t):
    """An ordinary user: per-task events of the user side."""
    result, thread = own_process(t, 2)
    check_line(result, PER_TASK, "tick (/proc)")
    check_on_cpu_names(thread)


@test
def own_process_paranoid_3(t):
    """The same where some kernels permit no events at all: then amounts."""
    result, thread = own_process(t, 3)
    if re.match(NO_STACKS, result.stderr):
        check_refused(thread.state("on-cpu"), ON_CPU_REFUSED)
        check("perf_event_paranoid" in result.stderr, "the cause is not named")
    else:
        check_line(result, PER_TASK, "tick (/proc)")
        check_on_cpu_names(thread)


@test
def seccomp_as_root(t):
    """A container's seccomp filter that refuses perf_event_open and bpf: amounts, and blocked stacks from /proc."""
    output = prepare(t)
    thread = run_row(t, output, start_target(t), (t.copy_of("deny_perf"),), NO_STACKS, "tick (/proc)")
    check_refused(thread.state("on-cpu"), ON_CPU_REFUSED)
    check_blocked_names(thread, "truth_sleep_ms")


@test
def seccomp_as_a_user(t):
    """The same for an ordinary user, with the filter answering ENOSYS as others do."""
    output = prepare(t)
    wrapper = (*USER, t.copy_of("deny_perf"), "--errno", "38")
    thread = run_row(t, output, start_target(t, user=True), wrapper, NO_STACKS, "tick (/proc)")
    check_refused(thread.state("on-cpu"), ON_CPU_REFUSED)
    check_blocked_names(thread, "truth_sleep_ms")


@test
def target_that_is_not_dumpable(t):
    """Nobody of its own user may look into it: amounts and states, and frames that say so; no loss."""
    output = prepare(t)
    target = start_target(t, "not-dumpable", user=True)
    thread = run_row(t, output, target, USER, NO_STACKS, "tick (/proc)")
    check_refused(thread.state("on-cpu"), ON_CPU_REFUSED)
    check_refused(thread.waiting(), BLOCKED_REFUSED)


@test
def unpermitted_time_is_counted_and_no_loss(t):
    """It is in the file as time without rights, and --max-loss 0 does not mind it."""
    output = prepare(t)
    target = start_target(t, "not-dumpable", user=True)
    result = t.collect("-p", target.pid, duration=2, wrapper=USER, output=output, expect=WRITTEN_OR_LOSS)
    profile = result.profile
    unpermitted = profile.all_threads.select(lambda s: ON_CPU_REFUSED in s or BLOCKED_REFUSED in s).time()
    check(unpermitted > 0.5 * profile.threads_total_ns(), f"only {unpermitted} of {profile.threads_total_ns()}")
    said = profile.loss.get("unpermittedNs")
    if said is not None:
        check_close("unpermitted, as the file says", said, unpermitted, relative=0.001)


WRITTEN_OR_LOSS = (0, 3)


@test
def own_command_as_a_user(t):
    """-- COMMAND has the rights over its child, and its exit code is the command's (124: loss, on a busy machine)."""
    output = prepare(t)
    program = t.copy_of("burn_and_nap")
    os.chmod(program, 0o755)
    limit = ("timeout", "--preserve-status", "2.5", program)
    result = t.collect("--", *limit, wrapper=USER, output=output, expect=(143, 124))
    named = [x for x in result.profile.threads if x.name.startswith("burn_and_nap")]
    check(named, f"no thread of the command: {[x.name for x in result.profile.threads]}")
    check_blocked_names(named[0], "truth_sleep_ms")


@test
def forks_and_names_without_perf_events(t):
    """Where no record tells of them: children, threads and names are found by looking."""
    output = prepare(t)
    target = start_target(t, name="forked_workers")
    collect = t.start_collect("-p", target.pid, "-d", 4, wrapper=(t.copy_of("deny_perf"),), output=output)
    collect.wait_started()
    target.write_line()
    late = target.read_line()["late"]
    profile = collect.finish().profile
    check(late in profile.tids(), f"the child {late} is missing: {profile.tids()}")
    thread = profile.thread(late)
    lived = thread.without_gaps().time()
    check(lived > 1_500 * MS, f"the child was seen for {lived} of 4 s only")


def refused(result, *words):
    check(result.code == 1, f"exit code {result.code}")
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    check(len(lines) == 1 and lines[0].startswith("stallgraph: "), f"not one line: {lines}")
    for word in words:
        check(re.search(word, lines[0]), f"no {word} in: {lines[0]}")


@test
def trace_says_why_it_cannot_be_had(t):
    """--off-cpu trace forces it: without the rights, cause and remedy."""
    output = prepare(t)
    target = start_target(t, user=True)
    arguments = ("-p", target.pid, "--off-cpu", "trace", "-d", 1)

    def run(*wrapper):
        result = t.collect(*arguments, wrapper=wrapper, output=output, expect=None)
        check(not os.path.exists(output), "something was written")
        return result

    engine = t.engine
    t.engine = "auto"
    with Paranoid(2):
        refused(run(*USER), "trace", "perf_event_paranoid", "CAP_PERFMON|root")
    refused(run(t.copy_of("deny_perf")), "trace", "seccomp", "profile|host")
    need_capability("perfmon")
    refused(run(*with_capabilities("perfmon")), "trace", "tracefs|tracing", "CAP_DAC_READ_SEARCH|root")
    t.engine = engine


@test
def tick_may_be_forced_in_either_way(t):
    """--off-cpu tick: by BPF or from /proc."""
    output = prepare(t)
    target = start_target(t)
    for wrapper, way in (((), "tick (BPF)"), (WITHOUT_BPF, "tick (/proc)")):
        result = t.collect("-p", target.pid, "--off-cpu", "tick", duration=1, wrapper=wrapper, output=output)
        check_line(result, CPU_WIDE, way)


@test
def hidden_process_is_refused_with_its_cause(t):
    """A /proc that shows a user nothing of others (hidepid): nothing can be had."""
    output = prepare(t)
    t.need_program("unshare")
    target = start_target(t)
    script = f'mount -t proc -o hidepid=2 proc /proc && exec {" ".join(USER)} "$@"'
    wrapper = ("unshare", "-m", "sh", "-c", script, "sh")
    result = t.collect("-p", target.pid, "-d", 1, wrapper=wrapper, output=output, expect=None)
    if "mount" in result.stderr and "stallgraph:" not in result.stderr:
        raise Skip(f"no such mount here: {result.stderr}")
    refused(result, "hidepid", "root")


def check_hung(t, wrapper, workload_arguments=()):
    """A thread whose stack never answers a read. Written in time; that thread is there, the others are whole."""
    target = t.workload("hung_stack", *workload_arguments)
    if "error" in target.truth:
        raise Skip(f"userfaultfd: {target.truth['error']}")
    collect = t.start_collect("-p", target.pid, wrapper=wrapper)
    collect.wait_started()
    time.sleep(2)
    began = time.monotonic()
    collect.signal(2)
    result = collect.finish()
    took = time.monotonic() - began
    check(took <= 2, f"written {took:.2f} s after the end")
    check(result.code in (0, 3), f"exit code {result.code}")
    profile = result.profile
    hung = profile.thread(target.truth["hung"]).waiting()
    check_close("the hung one is blocked", hung.time(), profile.duration_ns, relative=0.02, absolute=20 * MS)
    said = hung.select(lambda stack: stack[0] in ("[truncated]", "[blocked before attach]"))
    check_share("its stack is said to be cut", said, hung, at_least=0.95)
    naps = profile.thread(target.truth["naps"]).waiting()
    check_share("the napper is named", naps.having("truth_sleep_ms"), naps, at_least=0.9)
    burns = profile.thread(target.truth["burns"]).state("on-cpu").sampled()
    check_share("the burner is named", burns.having("burns"), burns, at_least=0.9)
    children = subprocess.run(["pgrep", "-P", str(collect.pid)], capture_output=True, check=False).stdout
    check(children == b"", f"a child is left: {children}")
    return hung


@test
def hung_stack_by_bpf(t):
    t.need_root()
    check_hung(t, ())


@test
def hung_stack_by_proc(t):
    t.need_root()
    check_hung(t, WITHOUT_BPF)


@test
def hung_stack_under_trace(t):
    t.need_root()
    engine, t.engine = t.engine, "trace"
    check_hung(t, ())
    t.engine = engine


def check_hung_deep(t, wrapper):
    """The copy of its stack is had; what lies above it hangs, and is left alone."""
    hung = check_hung(t, wrapper, ("deep",))
    check_share("cut where it hung", hung.with_chain("sleeps_deep", "sleeps_below"), hung, at_least=0.95)


@test
def hung_rest_of_a_stack_by_bpf(t):
    t.need_root()
    check_hung_deep(t, ())


@test
def hung_rest_of_a_stack_by_proc(t):
    t.need_root()
    check_hung_deep(t, WITHOUT_BPF)


@test
def hung_rest_of_a_stack_under_trace(t):
    t.need_root()
    engine, t.engine = t.engine, "trace"
    check_hung_deep(t, ())
    t.engine = engine


def check_short_threads(t, wrapper):
    """Threads that are gone before anybody looks: all their CPU time is there, as the process's own clock has it."""
    target = t.workload("short_threads")
    profile = t.collect("-p", target.pid, duration=3, wrapper=wrapper).profile
    lines = target.read_lines_now()
    points = [(profile.offset_of(line["wall_ns"]), line["cpu_ns"]) for line in lines if "cpu_ns" in line]
    inside = [point for point in points if 0 <= point[0] <= profile.duration_ns]
    check(len(inside) > 10, f"only {len(inside)} lines of the workload")
    rate = (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])
    seen = profile.all_threads.state("on-cpu").time()
    check_close("CPU time of the process", seen, rate * profile.duration_ns, relative=0.05, absolute=30 * MS)
    return profile


@test
def short_threads_by_bpf(t):
    t.need_root()
    check_short_threads(t, ())


@test
def short_threads_by_proc(t):
    t.need_root()
    profile = check_short_threads(t, WITHOUT_BPF)
    exited = profile.all_threads.select(lambda stack: "[exited]" in stack).time()
    check(exited > 0, f"[exited] is {exited} only")


def programs():
    done = subprocess.run(["bpftool", "-j", "prog", "list"], capture_output=True, check=False, timeout=20)
    if done.returncode != 0:
        raise Skip("bpftool cannot list programs")
    return {program["id"]: program for program in json.loads(done.stdout)}


def is_held(program):
    """Whether some process has a descriptor of it, or of a link to it: others of this machine load programs too."""
    wanted = f"prog_id:\t{program}\n"
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            for name in os.listdir(f"/proc/{pid}/fdinfo"):
                with open(f"/proc/{pid}/fdinfo/{name}", encoding="ascii") as file:
                    if wanted in file.read():
                        return True
        except OSError:
            continue
    return False


def children_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


@test
def sigkill_leaves_nothing(t):
    """Killed at any moment: no BPF program, no process of ours, an unharmed target."""
    t.need_root()
    t.need_program("bpftool")
    target = t.workload("mixed_threads")
    before = set(programs())
    for _ in range(8):
        collect = t.start_collect("-p", target.pid, "-d", 30)
        time.sleep(random.uniform(0.02, 0.8))
        children = children_of(collect.pid)
        collect.signal(9)
        collect.child.wait()
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            left = [p for id, p in programs().items() if id not in before and not is_held(id)]
            alive = [pid for pid in children if os.path.exists(f"/proc/{pid}")]
            if not left and not alive:
                break
            time.sleep(0.1)
        check(not left, f"BPF programs are left: {left}")
        check(not alive, f"processes are left: {alive}")
    check(target.alive(), "the target is gone")
