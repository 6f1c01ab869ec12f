"""Ours and others', to be switched on and off beside a load."""

import os
import re
import time

import programs

SETTLE_S = 1.0  # for those that do not say when they have begun
READY = "on-CPU: "  # how our line about what is measured how begins


def stallgraph(build):
    path = os.path.join(build, "stallgraph")
    if not os.access(path, os.X_OK):
        raise programs.Skip(f"{path} is not there: build first, or say where with --build")
    return path


class Profiler:
    """One way of profiling. command(load_pids, output) gives its argv, or raises Skip."""

    def __init__(self, name, label, command, ready=None):
        self.name, self.label, self.command, self.ready = name, label, command, ready
        self.output_bytes = []
        self.cpu_shares = []  # of one CPU, of the time it was there
        self.failures = []
        self._child = self._started = self._folder = None

    def start(self, pids):
        self._folder = programs.folder()
        argv = self.command(pids, os.path.join(self._folder, "out"))
        self._log = open(os.path.join(self._folder, "log"), "wb")
        # The output of ours is read for the line that says it has begun.
        self._child = programs.Child(
            argv, output="errors" if self.ready else None, log=self._log, cwd=self._folder, env=dict(os.environ, DEBUGINFOD_URLS="")
        )
        self._started = time.monotonic()
        if self.ready is None:
            time.sleep(SETTLE_S)
        elif not self._child.wait_for_line(self.ready):
            said = " / ".join(self._child.seen[-3:]) or "it said nothing"
            self.failures.append(f"it did not begin: {said}, {'still there' if self._child.is_running() else self._child.status}")
        else:
            time.sleep(SETTLE_S / 2)
        if not self._child.is_running():
            self.failures.append(f"it ended at once with {self._child.status}")

    def stop(self):
        if not self._child.stop():
            self.failures.append("it did not end within 30 s")
        elapsed = time.monotonic() - self._started
        usage = self._child.rusage
        self.cpu_shares.append((usage.ru_utime + usage.ru_stime) / elapsed)
        self._log.close()
        files = [os.path.join(self._folder, name) for name in os.listdir(self._folder)]
        self.output_bytes.append(sum(os.path.getsize(path) for path in files))
        for path in files:
            os.unlink(path)


def all_profilers(build):
    """The first is ours by default; None is nothing at all, which shows the noise."""
    ours = stallgraph(build)

    def perf(*options):
        def command(pids, output):
            return [programs.find("perf"), "record", *options, "-o", output, "-p", ",".join(map(str, pids))]

        return command

    def offcputime(pids, output):
        del output
        path = programs.find("offcputime", "/usr/sbin/offcputime")
        if len(pids) > 1:
            raise programs.Skip("its -p takes one process, and this load has several that work")
        return [path, "-p", pids[0]]

    def collect(*options):
        def command(pids, output):
            return [ours, "collect", "-v", *options, "-o", output, "-p", ",".join(map(str, pids))]

        return command

    return [
        Profiler("ours", "stallgraph (default)", collect(), READY),
        Profiler("trace", "stallgraph --off-cpu trace", collect("--off-cpu", "trace"), READY),
        Profiler("perf-switch", "perf record -g -e sched:sched_switch -p", perf("-g", "-e", "sched:sched_switch")),
        Profiler("perf-99", "perf record -F 99 -g -p", perf("-F", "99", "-g")),
        Profiler("offcputime", "offcputime -p", offcputime),
    ]


def engine_of(lines):
    """"tick (BPF)" out of our line about what is measured how."""
    for line in lines:
        found = re.search(r"blocked: ([^;]+);", line)
        if line.startswith(READY) and found:
            return found.group(1)
    return None
