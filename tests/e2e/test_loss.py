"""What is lost is said, in the file and on stderr; nothing is invented."""

import re
import signal
import time

from harness import MS, check, check_close, test, test_each_engine

LOSS = ("[lost]", "[unsampled]")


@test_each_engine
def ring_overflow_is_said(t):
    """The collector is stopped for 3 s while the target switches as fast as it can: the loss is counted, and not made
    into a wait of 3 s."""
    target = t.workload("ping_pong")
    collect = t.start_collect("-p", target.pid, "-d", 6)
    collect.wait_started()
    collect.signal(signal.SIGSTOP)
    time.sleep(3)
    collect.signal(signal.SIGCONT)
    result = collect.finish()
    check(result.code in (0, 3), f"exit code {result.code}")
    profile = result.profile
    unknown = profile.all_threads.select(lambda stack: stack[-1] in LOSS).time()
    print(f"lost events: {profile.loss['lostEvents']}, lost time: {unknown / 1e9:.3f} s")
    # What looks at threads at its own pace misses nothing that the kernel would have kept for it.
    check(profile.loss["lostEvents"] > 0 or profile.has_engine("tick"), f"no event was lost: {profile.loss}")
    check(re.search(r"(lost|dropped|unsampled)[^\n]*[1-9]", result.stderr), "stderr does not say it")
    check(unknown > 50 * MS, f"the loss is no time: {unknown}")
    for name in ("ping", "pong"):
        thread = profile.thread(target.truth[name])
        for start, length, stack in thread.runs():
            # A bare [runnable] is an amount that the kernel counted, with no stack made up for it.
            known = stack and stack[-1] not in LOSS and stack != ("[runnable]",)
            what = f"{length / 1e9:.2f} s of {stack} from {start / 1e9:.2f} s on"
            check(not known or length < 500 * MS, f"{name}: {what}")
        check_close(f"{name}: lifetime", thread.without_gaps().time(), profile.duration_ns, relative=0.01)


@test_each_engine
def loss_above_the_limit_is_exit_code_3(t):
    """--max-loss 0 with real loss: the profile is written all the same."""
    target = t.workload("ping_pong")
    collect = t.start_collect("-p", target.pid, "--max-loss", 1, "-d", 4)
    collect.wait_started()
    collect.signal(signal.SIGSTOP)
    time.sleep(2)
    collect.signal(signal.SIGCONT)
    result = collect.finish()
    check(result.profile.threads, "no profile")
    check(result.code == 3, f"exit code {result.code}")


@test
def nothing_on_a_cpu_is_a_valid_profile(t):
    """--mode on-cpu of a process that sleeps: a warning, and files that load."""
    target = t.workload("blocked_since_start")
    time.sleep(0.3)
    result = t.collect("-p", target.pid, "--mode", "on-cpu", duration=1, formats_wanted="speedscope,folded,svg,pprof")
    profile = result.profile
    check(len(profile.threads) == 6, f"{len(profile.threads)} threads")
    check(profile.threads_total_ns() == 0, f"time of a target that slept:\n{profile.all_threads.top()}")
    check(result.folded.samples == [], "folded lines of nothing")
    check(result.svg.root is not None, "no svg")
    check(result.pprof.samples == [], "pprof samples of nothing")
    check(re.search(r"no samples|nothing|no time|never ran", result.stderr, re.I), f"no warning: {result.stderr}")


@test
def hardly_any_time_is_a_valid_profile(t):
    """A window of 20 ms."""
    target = t.workload("busy")
    result = t.collect("-p", target.pid, duration="0.02", formats_wanted="speedscope,folded,svg,pprof")
    thread = result.profile.thread(target.pid)
    check_close("all states", thread.without_gaps().time(), result.profile.duration_ns, relative=0.01)
    check(all(stack for stack, _, _ in thread.samples), "a gap in the life of a thread")
    check(result.svg.root is not None and result.folded.time() > 0, "nothing in the other formats")
    check(result.pprof.time() > 0, "nothing in pprof")
