"""Stacks are whole, or say that they are not."""

import re

from harness import WITHOUT_BPF, check, check_share, test, test_each_engine

TRUNCATED = "[truncated]"


@test_each_engine
def blocked_stack_without_frame_pointers(t):
    """libc and a program without frame pointers: DWARF unwinding tells who sleeps."""
    target = t.workload("nested_sleep")
    thread = t.collect("-p", target.pid, duration=2).profile.thread(target.pid)
    blocked = thread.waiting()
    check_share("whole", blocked.with_chain("main", "outer_wait", "inner_wait"), blocked, at_least=0.95)


@test
def running_stack_without_frame_pointers(t):
    """The same while it runs."""
    target = t.workload("busy_nofp")
    on = t.collect("-p", target.pid, duration=2).profile.thread(target.pid).state("on-cpu").sampled()
    check_share("whole", on.with_chain("main", "middle", "hot_leaf"), on, at_least=0.98)


@test_each_engine
def stacks_of_all_kinds_reach_their_start(t):
    """Without frame pointers, where the stack fits the copy: at least 98 % of the stacks are whole."""
    target = t.workload("mixed_threads_nofp")
    result = t.collect("-p", target.pid, duration=3)
    profile = result.profile
    check(profile.loss["unwoundStacks"] > 100, f"few stacks: {profile.loss}")
    check_share("truncated", profile.loss["truncatedStacks"], profile.loss["unwoundStacks"], at_most=0.02)
    seen = whole = 0
    for thread in profile.threads:
        stacks = thread.state("on-cpu", "runnable", "blocked", "idle").sampled()
        seen += stacks.time()
        whole += stacks.select(lambda stack: TRUNCATED not in stack).time()
    check_share("whole", whole, seen, at_least=0.98)


def check_cut_stacks(result, pid, state, function):
    thread = result.profile.thread(pid)
    stacks = (thread.waiting() if state == "blocked" else thread.state(state)).sampled()
    check(stacks.having("works").time() > 0, f"nothing seen in works:\n{thread.top(3)}")
    cut = stacks.select(lambda stack: stack[0] == TRUNCATED)
    rootless = stacks.having("works").select(lambda stack: "main" not in stack and stack[0] != TRUNCATED)
    check(not rootless.samples, f"stacks without a root at top level:\n{rootless.top(3)}")
    check(all(stack[0] != function for stack, _, _ in stacks.samples), f"{function} is a root")
    if cut.samples:
        check(re.search(r"truncated[^\n]*\d %", result.stderr), "stderr does not say how many were truncated")
    return stacks


def check_rooted(stacks):
    rooted = stacks.select(lambda stack: "main" in stack or stack[0] == TRUNCATED)
    check_share("root is main or marked", rooted, stacks, at_least=0.99)


@test
def stack_larger_than_the_copy_is_marked(t):
    """150 KB of stack, of which the kernel copies 64 KB at most: what is cut stands under [truncated], stderr says so."""
    target = t.workload("deep_stack_nofp", "bytes", "4")
    result = t.collect("-p", target.pid, duration=2)
    check_cut_stacks(result, target.pid, "on-cpu", "wide")


@test_each_engine
def blocked_stack_larger_than_the_copy_is_marked(t):
    target = t.workload("deep_stack_nofp", "bytes", "4", "blocks")
    result = t.collect("-p", target.pid, duration=2)
    check_cut_stacks(result, target.pid, "blocked", "wide")


@test
def five_hundred_frames_reach_main(t):
    """More than the 127 frames that perf's chains hold."""
    target = t.workload("deep_stack", "frames", "500")
    result = t.collect("-p", target.pid, duration=2)
    works = check_cut_stacks(result, target.pid, "on-cpu", "nested").having("works")
    check_rooted(works)
    whole = works.having("main").select(lambda stack: stack.count("nested") == 501)
    check_share("501 frames", whole, works.having("main"), at_least=0.99)


@test_each_engine
def five_hundred_frames_reach_main_when_blocked(t):
    target = t.workload("deep_stack_nofp", "frames", "500", "blocks")
    result = t.collect("-p", target.pid, duration=2)
    check_rooted(check_cut_stacks(result, target.pid, "blocked", "nested").having("works"))


def check_whole_when_blocked(t, workload, arguments, function, frames, *options, wrapper=()):
    """Deeper than the first copy by far; the rest is read on demand."""
    target = t.workload(workload, *arguments)
    result = t.collect("-p", target.pid, *options, duration=3, wrapper=wrapper)
    stacks = result.profile.thread(target.pid).waiting()
    whole = stacks.having("main", function).select(lambda stack: stack[0] != TRUNCATED and stack.count(function) == frames)
    check_share(f"main and {frames} frames of {function}", whole, stacks, at_least=0.98)
    return result


@test
def large_frames_reach_main_when_blocked(t):
    """Five frames of 30 KB, in naps of 20 ms: also where a nap is over before the rest of its stack can be read."""
    result = check_whole_when_blocked(t, "deep_stack_nofp", ("bytes", "4", "blocks"), "wide", 5)
    looks = result.profile.own["looks"]
    check(looks["stacksDeep"] > 20, f"few deep stacks: {looks}")
    check(looks["stacksDeep"] <= looks["stacksTaken"], f"more deep stacks than stacks: {looks}")
    check(looks["deepRecalled"] <= looks["deepFailed"] < looks["stacksDeep"], f"none was read: {looks}")


@test
def large_frames_reach_main_when_blocked_by_proc(t):
    t.need_root()
    check_whole_when_blocked(t, "deep_stack_nofp", ("bytes", "4", "blocks"), "wide", 5, wrapper=WITHOUT_BPF)


@test
def huge_frames_reach_main_when_blocked(t):
    """Five megabytes of buffers: what lies between the frames is not read."""
    check_whole_when_blocked(t, "deep_stack_nofp", ("huge", "4", "blocks"), "huge", 5)


@test
def two_thousand_frames_reach_main_when_blocked(t):
    check_whole_when_blocked(t, "deep_stack_nofp", ("frames", "1949", "blocks"), "nested", 1950)


@test
def two_thousand_frames_reach_main_by_frame_pointers(t):
    arguments = ("frames", "1949", "blocks")
    check_whole_when_blocked(t, "deep_stack", arguments, "nested", 1950, "--call-graph", "fp")


@test_each_engine
def deep_stack_asleep_since_before_is_whole(t):
    """It is looked at once, and never wakes."""
    check_whole_when_blocked(t, "deep_stack_nofp", ("bytes", "4", "stays"), "wide", 5)


@test
def leaf_keeps_its_caller(t):
    """A leaf without a frame of its own, sampled anywhere in it: its caller is not skipped."""
    target = t.workload("leaf_frame")
    on = t.collect("-p", target.pid, duration=2).profile.thread(target.pid).state("on-cpu").sampled()
    leaf = on.having("tiny_leaf")
    check_share("leaf was hit", leaf, on, at_least=0.5)
    check_share("caller", leaf.with_chain("grandparent", "parent", "tiny_leaf"), leaf, at_least=0.98)


def check_signal_frame(t, program):
    target = t.workload(program)
    on = t.collect("-p", target.pid, duration=2).profile.thread(target.pid).state("on-cpu").sampled()
    handler = on.having("in_handler")
    check_share("handler was hit", handler, on, at_least=0.1)
    whole = handler.having("main", "work", "in_handler")
    check_share("work below the handler", whole, handler, at_least=0.9)


@test
def signal_handler_stands_on_what_it_interrupted(t):
    check_signal_frame(t, "signal_frame")


@test
def signal_handler_stands_on_what_it_interrupted_without_frame_pointers(t):
    check_signal_frame(t, "signal_frame_nofp")


@test
def frame_pointers_of_blocked_threads(t):
    """--call-graph fp: the kernel has no chain of a thread that does not run; libc's own caller has no link."""
    target = t.workload("deep_stack", "frames", "20", "blocks")
    result = t.collect("-p", target.pid, "--call-graph", "fp", duration=2)
    blocked = result.profile.thread(target.pid).waiting()
    check_share("whole", blocked.with_chain("main", *["nested"] * 21, "works"), blocked, at_least=0.98)


@test
def frame_pointers_by_choice(t):
    """--call-graph fp on code that keeps them."""
    target = t.workload("busy")
    result = t.collect("-p", target.pid, "--call-graph", "fp", duration=2)
    on = result.profile.thread(target.pid).state("on-cpu").sampled()
    check_share("whole", on.having("main", "middle", "hot_leaf"), on, at_least=0.95)
