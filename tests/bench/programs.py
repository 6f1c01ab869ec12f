"""Starting and ending programs, and what the kernel says of them. Everything that is started here is ended by its pid
when the benchmark ends, however that happens."""

import atexit
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
SKIPPED = 77

_children = []
_folders = []


class Skip(Exception):
    """What is to be measured cannot be had here."""


def _die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class Child:
    """A program. output: "lines" to read its stdout, "errors" to read its stderr, None for neither."""

    def __init__(self, argv, output=None, log=None, **options):
        self.argv = [str(a) for a in argv]
        other = log if log is not None else subprocess.DEVNULL
        options.setdefault("preexec_fn", _die_with_parent)
        self._process = subprocess.Popen(
            self.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if output == "lines" else other,
            stderr=subprocess.PIPE if output == "errors" else other,
            **options,
        )
        self.pid = self._process.pid
        self.rusage = None
        self.status = None
        self._stream = {"lines": self._process.stdout, "errors": self._process.stderr}.get(output)
        self._buffer = b""
        self.seen = []  # lines that were read
        _children.append(self)

    def read_line(self, timeout_s=20.0):
        """The next line, or None at the end of the output or of the time. A carriage return ends one too."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._stream], [], [], left)[0]:
                return None
            data = os.read(self._stream.fileno(), 65536)
            if not data:
                return None
            self._buffer += data.replace(b"\r", b"\n")
        line, _, self._buffer = self._buffer.partition(b"\n")
        self.seen.append(line.decode("utf-8", "replace"))
        return self.seen[-1]

    def wait_for_line(self, start, timeout_s=20.0):
        """Whether a line that starts so came."""
        while True:
            line = self.read_line(timeout_s)
            if line is None or line.startswith(start):
                return line is not None

    def drain(self):
        """Reads what is there, and throws it away."""
        while self._stream is not None and select.select([self._stream], [], [], 0)[0]:
            if not os.read(self._stream.fileno(), 65536):
                return

    def ask(self):
        """The next line of JSON, for an empty line of input."""
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        line = self.read_line()
        if line is None:
            raise RuntimeError(f"{self.argv[0]} says nothing")
        return json.loads(line)

    def is_running(self):
        return self.status is None and self._reap(os.WNOHANG) is False

    def _reap(self, flags):
        if self.status is None:
            pid, status, rusage = os.wait4(self.pid, flags)
            if pid == 0:
                return False
            self.status, self.rusage = os.waitstatus_to_exitcode(status), rusage
            self._process.returncode = self.status
        return True

    def wait(self, timeout_s):
        """Whether it ended in time; status and rusage are set then."""
        deadline = time.monotonic() + timeout_s
        while not self._reap(os.WNOHANG):
            if time.monotonic() >= deadline:
                return False
            if self._stream is not None:
                self.drain()
            time.sleep(0.002)
        return True

    def stop(self, number=signal.SIGINT, timeout_s=30.0):
        """Whether it ended by itself after the signal."""
        if self.status is None and not self._reap(os.WNOHANG):
            os.kill(self.pid, number)
        ended = self.wait(timeout_s)
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
            self._reap(0)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass
        if self in _children:
            _children.remove(self)
        return ended


def run(argv, **options):
    return subprocess.run([str(a) for a in argv], check=True, stdout=subprocess.DEVNULL, **options)


def folder():
    path = tempfile.mkdtemp(prefix="stallgraph-bench-")
    _folders.append(path)
    return path


@atexit.register
def end_all():
    for child in list(reversed(_children)):
        child.stop(signal.SIGTERM, 5.0)
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)


def end_on_signals():
    """So that what was started is ended too."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))


def find(name, *places):
    for place in (shutil.which(name), *places):
        if place and os.access(place, os.X_OK):
            return place
    raise Skip(f"{name} is not installed")


def process_tree(pid):
    """The process and its descendants, as far as they live."""
    pids, seen = [pid], 0
    while seen < len(pids):
        try:
            for tid in os.listdir(f"/proc/{pids[seen]}/task"):
                with open(f"/proc/{pids[seen]}/task/{tid}/children", encoding="ascii") as file:
                    pids += [int(p) for p in file.read().split()]
        except OSError:
            pass
        seen += 1
    return pids


def cpu_s(pid):
    """CPU time of a process so far, to the nanosecond; 0 when it is gone. See clock_getcpuclockid(3)."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


def thread_ids(pid):
    try:
        return [int(tid) for tid in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def thread_cpu_ns(tid):
    try:
        with open(f"/proc/{tid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])
    except OSError:
        return 0


def tree_cpu_s(pid):
    return sum(cpu_s(p) for p in process_tree(pid))


def status_fields(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return {}


def memory_kb(pid, field="VmRSS"):
    """0 when it is gone."""
    return int(status_fields(pid).get(field, "0 kB").split()[0])


def descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0
