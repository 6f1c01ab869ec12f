"""CPU quotas of control groups: time that one keeps a thread from its CPU is [throttled], not blocked, nor any wait for a CPU."""

import os
import time

from harness import MS, NS, Skip, check, check_close, check_share, read_text, schedstat, test, test_each_engine

WITHOUT_BPF = ("setpriv", "--bounding-set", "-bpf,-sys_admin", "--inh-caps", "-bpf,-sys_admin")
QUOTA_NS, PERIOD_NS = 10 * MS, NS


def write_text(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def find_mount():
    """(mount point, version) of the hierarchy that has the CPU controller."""
    for line in read_text("/proc/self/mountinfo").splitlines():
        place, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        point = place.split(" ")[4]
        if kind == "cgroup" and "cpu" in options.split(","):
            return point, 1
        if kind == "cgroup2" and "cpu" in read_text(f"{point}/cgroup.controllers").split():
            return point, 2
    raise Skip("no control group hierarchy with the CPU controller is mounted")


class Group:
    """A control group with a quota; its processes must end before it does."""

    def __init__(self, t, name="", parent=None):
        t.need_root()
        self.point, self.version = find_mount()
        self.path = f"{parent.path}/{name}" if parent else f"{self.point}/stallgraph-test-{os.getpid()}"
        self._enabled = None
        try:
            if self.version == 2 and parent is None:
                self._enable()
            os.mkdir(self.path)
        except OSError as error:
            self._disable()
            raise Skip(f"a control group cannot be made: {error}") from error
        t.ends(self)

    def _enable(self):
        control = f"{self.point}/cgroup.subtree_control"
        if "cpu" not in read_text(control).split():
            write_text(control, "+cpu")
            self._enabled = control

    def _disable(self):
        if self._enabled:
            write_text(self._enabled, "-cpu")
            self._enabled = None

    def limit(self, quota_ns, period_ns):
        quota, period = str(quota_ns // 1000), str(period_ns // 1000)
        if self.version == 2:
            write_text(f"{self.path}/cpu.max", f"{quota} {period}")
        else:
            write_text(f"{self.path}/cpu.cfs_period_us", period)
            write_text(f"{self.path}/cpu.cfs_quota_us", quota)

    def add(self, pid):
        write_text(f"{self.path}/cgroup.procs", str(pid))

    def throttled_ns(self):
        fields = dict(line.split() for line in read_text(f"{self.path}/cpu.stat").splitlines())
        return int(fields["throttled_time"]) if self.version == 1 else int(fields["throttled_usec"]) * 1000

    def end(self):
        for _ in range(100):  # what was in it is gone a moment after it was reaped
            try:
                os.rmdir(self.path)
                break
            except OSError:
                time.sleep(0.05)
        self._disable()


def limited_hog(t, outer=False):
    """(hog, the group whose quota holds it)."""
    group = Group(t)
    group.limit(QUOTA_NS, PERIOD_NS)
    inner = Group(t, "inner", parent=group) if outer else group
    hog = t.workload("busy")
    inner.add(hog.pid)
    return hog, group


def collect_held(t, hog, group, **options):
    """A profile, and which share of the hog's waiting the kernel says that the quota was the cause of."""
    before = group.throttled_ns(), schedstat(hog.pid, hog.pid)[1]
    profile = t.collect("-p", hog.pid, duration=4, **options).profile
    after = group.throttled_ns(), schedstat(hog.pid, hog.pid)[1]
    held, waited = (b - a for a, b in zip(before, after))
    check(held > 0, "the quota was never used up")
    share = min(held / waited, 1)
    print(f"the kernel's counts: waited {waited}, held {held}, {share:.3f}")
    return profile, share


def throttled(stacks):
    return stacks.select(lambda stack: stack and stack[-1] == "[throttled]")


def check_held(profile, hog, share):
    thread = profile.thread(hog.pid)
    waiting = thread.state("runnable", "blocked", "idle", "stopped", "unknown")
    # The kernel counts when a period ends, so those at the window's ends are not the same ones.
    check_share("throttled, of all waiting", throttled(thread), waiting, at_least=min(0.9, share - 0.1))
    check_share("blocked", thread.waiting(), thread.without_gaps(), at_most=0.01)
    check_close("on-CPU", thread.state("on-cpu").time(), thread.kernel_on_cpu, relative=0.02, absolute=10 * MS)
    quota = profile.own["cpuQuota"]
    print(f"in the file: {quota}")
    check((quota["quotaNs"], quota["periodNs"]) == (QUOTA_NS, PERIOD_NS), f"the quota is given as {quota}")
    check(1 <= quota["throttledPeriods"] <= quota["periods"] <= 6, f"periods: {quota}")
    check(0 < quota["throttledNs"] < 6 * PERIOD_NS, f"time: {quota}")


@test_each_engine
def quota_throttles_and_does_not_block(t):
    """A hog with 10 ms of each second: its waiting is [throttled], and the stacks say where it was held."""
    hog, group = limited_hog(t)
    profile, share = collect_held(t, hog, group)
    check_held(profile, hog, share)
    held = throttled(profile.thread(hog.pid))
    if t.engine == "auto" and profile.has_engine("tick (BPF)"):
        check_share("held in its loop", held.having("main", "middle", "[throttled]"), held, at_least=0.95)


@test
def quota_is_told_without_bpf(t):
    """By /proc: nothing says of a thread that it is held; the group's counts do."""
    t.need_program("setpriv")
    hog, group = limited_hog(t)
    profile, share = collect_held(t, hog, group, wrapper=WITHOUT_BPF)
    check(profile.has_engine("tick (/proc)"), f"another engine: {profile.own['engines']}")
    check_held(profile, hog, share)


@test
def quota_of_an_outer_group_counts(t):
    """The quota is set one level above the hog's own group, as for a container within a pod."""
    t.need_program("setpriv")
    hog, group = limited_hog(t, outer=True)
    for wrapper in ((), WITHOUT_BPF):
        profile, share = collect_held(t, hog, group, wrapper=wrapper)
        check_held(profile, hog, share)


@test_each_engine
def preempted_is_not_throttled(t):
    """Two hogs on one CPU without a quota, and in a group with one that it never uses up."""
    group = Group(t)
    group.limit(100 * os.cpu_count() * MS, 100 * MS)
    hogs = [t.workload("busy"), t.workload("busy")]
    for hog in hogs:
        os.sched_setaffinity(hog.pid, {0})
    wrappers = [(), WITHOUT_BPF] if t.engine == "auto" else [()]
    for wrapper in wrappers:
        check_preempted(t.collect("-p", hogs[0].pid, duration=2, wrapper=wrapper).profile, hogs[0])
    group.add(hogs[0].pid)
    for wrapper in wrappers:
        profile = t.collect("-p", hogs[0].pid, duration=2, wrapper=wrapper).profile
        check_preempted(profile, hogs[0])
        check(profile.own["cpuQuota"]["throttledPeriods"] == 0, f"throttled: {profile.own['cpuQuota']}")


def check_preempted(profile, hog):
    thread = profile.thread(hog.pid)
    check_share("runnable", thread.state("runnable"), thread.without_gaps(), at_least=0.2)
    check(throttled(thread).time() == 0, f"throttled without a quota:\n{thread.top()}")
