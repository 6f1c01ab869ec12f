"""With fewer rights: as much as they allow, and the cause and the remedy where they allow too little."""

import os
import re
import resource
import subprocess
import time

from harness import MS, NOBODY, Skip, check, check_close, check_share, test

AS_NOBODY = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")


def setup_for_nobody(t):
    t.need_root()
    t.need_program("setpriv")
    t.binary = t.binary_for_nobody()
    folder = t.path("nobody")
    os.mkdir(folder)
    os.chown(folder, NOBODY, NOBODY)
    return folder


def workload_of_nobody(t, name, *arguments):
    program = t.copy_of(name, f"{name}.nobody")
    os.chmod(program, 0o755)
    return t.start([*AS_NOBODY, program, *arguments])


def collect_as_nobody(t, target, output, duration=2, **options):
    return t.collect("-p", target.pid, duration=duration, wrapper=AS_NOBODY, output=output, expect=None, **options)


def paranoid():
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
        return int(file.read())


@test
def own_process_without_privileges(t):
    """A user's own process: at least amounts from the kernel and one line that says what is missing."""
    folder = setup_for_nobody(t)
    target = workload_of_nobody(t, "burn_and_nap")
    counters = t.counters(target.pid)
    result = collect_as_nobody(t, target, f"{folder}/out.speedscope.json", duration=3)
    counters.stop()
    if result.code == 1:
        check_one_line_with_remedy(result)
        return
    check(result.code in (0, 3), f"exit code {result.code}")
    profile = result.profile
    thread = profile.thread(target.pid)
    check_close("all states", thread.without_gaps().time(), profile.duration_ns, relative=0.02)
    on_cpu_ns = thread.state("on-cpu").time()
    counters.check_on_cpu("on-CPU", on_cpu_ns, target.pid, profile.start_wall_ns, profile.end_wall_ns, absolute=60 * MS)
    if paranoid() <= 2:
        on = thread.state("on-cpu").sampled()
        check_share("named", on.having("main", "burn"), on, at_least=0.9)


def check_one_line_with_remedy(result):
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    check(len(lines) == 1, f"{len(lines)} lines: {result.stderr}")
    check(lines[0].startswith("stallgraph: "), f"the line: {lines[0]}")
    check(lines[0].count(":") >= 2, f"no cause in: {lines[0]}")
    check(len(lines[0]) < 500, f"a very long line: {lines[0]}")


@test
def process_of_another_user_is_refused_or_said(t):
    """A stranger's process: one clear line, or a profile whose stacks say that they are not permitted."""
    folder = setup_for_nobody(t)
    target = t.workload("busy")
    result = collect_as_nobody(t, target, f"{folder}/out.speedscope.json")
    check(target.alive(), "the target is gone")
    if result.code == 1:
        check_one_line_with_remedy(result)
        check(not os.listdir(folder), f"left behind: {os.listdir(folder)}")
        return
    check(result.code in (0, 3), f"exit code {result.code}")
    names = result.profile.all_threads.names()
    check(any("not permitted" in name for name in names), f"no word of it: {names}")


@test
def small_lock_limit_shrinks_the_buffer_or_is_named(t):
    """RLIMIT_MEMLOCK of 64 KiB for an ordinary user: a smaller buffer, or the line names perf_event_mlock_kb."""
    folder = setup_for_nobody(t)
    if paranoid() > 2:
        raise Skip("perf_event_paranoid does not let an ordinary user sample")
    target = workload_of_nobody(t, "busy")

    def limit():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 * 1024, 64 * 1024))

    result = collect_as_nobody(t, target, f"{folder}/out.speedscope.json", preexec_fn=limit)
    if result.code == 1:
        check_one_line_with_remedy(result)
        check("perf_event_mlock_kb" in result.stderr, "the remedy is not named")
        return
    check(result.code in (0, 3), f"exit code {result.code}")
    thread = result.profile.thread(target.pid)
    on = thread.state("on-cpu").sampled()
    check_share("named", on.having("main", "middle", "hot_leaf"), on, at_least=0.95)


@test
def few_descriptors_with_a_hard_limit_above(t):
    """ulimit -n 256, soft: the limit is raised as far as needed, and all 301 threads are there."""
    target = t.workload("many_threads", "300")

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 8192))

    result = t.collect("-p", target.pid, duration=2, preexec_fn=limit)
    check(len(result.profile.threads) == 301, f"{len(result.profile.threads)} threads")


@test
def few_descriptors_of_an_ordinary_user_with_a_hard_limit_above(t):
    """The same as an ordinary user, who has events for each thread: those who read for us have the raised limit too."""
    folder = setup_for_nobody(t)
    if paranoid() > 2:
        raise Skip("perf_event_paranoid does not let an ordinary user sample")
    target = workload_of_nobody(t, "many_threads", "300")

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))

    result = collect_as_nobody(t, target, f"{folder}/out.speedscope.json", preexec_fn=limit)
    check(result.code in (0, 3), f"exit code {result.code}")
    threads = result.profile.own["threads"]
    check(len(threads) == 301, f"{len(threads)} threads")
    lost = sum(thread["lostNs"] for thread in threads)
    check(lost < 0.2 * sum(thread["lifetimeNs"] for thread in threads), f"{lost / 1e9:.1f} s are lost")


@test
def few_descriptors_are_no_lack_of_permission(t):
    """ulimit -n 256, hard, as an ordinary user with 300 threads: it works, or the line tells the limit and the need."""
    folder = setup_for_nobody(t)
    if paranoid() > 2:
        raise Skip("perf_event_paranoid does not let an ordinary user sample")
    target = workload_of_nobody(t, "many_threads", "300")

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    result = collect_as_nobody(t, target, f"{folder}/out.speedscope.json", preexec_fn=limit)
    if result.code != 0:
        needed = [int(number) for number in re.findall(r"\d+", result.stderr)]
        check(re.search(r"descriptors|open files|ulimit -n|RLIMIT_NOFILE", result.stderr), "the limit is not named")
        check(any(number > 256 for number in needed), "how many are needed is not said")
        check(result.code == 1, f"exit code {result.code}")
        check_one_line_with_remedy(result)
        return
    check(len(result.profile.threads) == 301, "threads are missing without a word")


@test
def descriptors_do_not_leak(t):
    """While processes come and go, the number of open descriptors stays in bounds."""
    target = t.workload("forked_workers")
    collect = t.start_collect("-p", target.pid, "-d", 4)
    collect.wait_started()
    target.write_line()
    target.read_line()
    time.sleep(0.5)
    before = len(os.listdir(f"/proc/{collect.pid}/fd"))
    for _ in range(10):
        target.write_line()
        late = target.read_line()["late"]
        os.kill(late, 9)
        time.sleep(0.05)
    time.sleep(0.5)
    after = len(os.listdir(f"/proc/{collect.pid}/fd"))
    print(f"descriptors: {before}, after ten more processes {after}")
    collect.finish()
    check(after <= before + 40, f"descriptors grew from {before} to {after}")


@test
def zeroed_kernel_symbols_give_no_wrong_names(t):
    """Without CAP_SYSLOG the kernel hides its addresses: kernel frames are [kernel], not whatever comes first."""
    t.need_root()
    t.need_program("setpriv")
    wrapper = ("setpriv", "--bounding-set", "-syslog", "--inh-caps", "-syslog")
    if any(address != "0" * 16 for address in kernel_addresses(wrapper)):
        raise Skip("this kernel shows its addresses without CAP_SYSLOG too")
    target = t.workload("ping_pong")
    profile = t.collect("-p", target.pid, "--kernel", "all", duration=1.5, wrapper=wrapper, expect=None).profile
    kernel = profile.names_of_kind("kernel")
    print(f"kernel frames: {kernel}")
    check(kernel, "no kernel frame at all")
    check(kernel == {"[kernel]"}, f"names from zeroed addresses: {kernel}")


def kernel_addresses(wrapper):
    done = subprocess.run([*wrapper, "head", "-n", "200", "/proc/kallsyms"], capture_output=True, check=True, text=True)
    return [line.split()[0] for line in done.stdout.splitlines()]


@test
def kernel_frames_on_demand(t):
    """--kernel none, on-cpu and all: what stands in the stacks."""
    t.need_root()
    target = t.workload("burn_and_nap")
    seen = {}
    for choice in ("none", "all"):
        profile = t.collect("-p", target.pid, "--kernel", choice, duration=1).profile
        blocked = profile.thread(target.pid).waiting()
        kernel = profile.names_of_kind("kernel")
        seen[choice] = blocked.select(lambda stack, kernel=kernel: any(name in kernel for name in stack)).time()
        check(blocked.time() > 0, "never blocked")
    check(seen["none"] == 0, "kernel frames with --kernel none")
    check(seen["all"] > 0, "no kernel frame in blocked stacks with --kernel all")
