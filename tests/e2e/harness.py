"""What the end-to-end tests share: starting workloads, running stallgraph on them, the kernel's counters, assertions.

A test is a function with the decorator @test that takes one argument, the Context:

    @test
    def hog_is_never_blocked(t):
        '''Row 4: a preempted thread waits for a CPU; it is not blocked.'''
        hog = t.workload("busy")
        profile = t.collect("-p", hog.pid, duration=3).profile
        check(profile.thread(hog.pid).state("blocked").time() == 0, "blocked time of a thread that never blocks")

Truth is what the workload says of itself or what the kernel counted, never a hoped-for share of the wall clock: the
machine may be busy with other things. Everything that a test starts is ended, by its pid, when it is over.
"""

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import formats

TESTS = {}
EACH_ENGINE = set()  # names of those that run once more for each engine
NS = 1_000_000_000
MS = 1_000_000
NOBODY = 65534
WRITTEN = (0, 3)
WITHOUT_BPF = ("setpriv", "--bounding-set", "-bpf,-sys_admin", "--inh-caps", "-bpf,-sys_admin")
EXTENSIONS = {"speedscope": ".speedscope.json", "folded": ".folded", "svg": ".svg", "pprof": ".pb.gz"}


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def test(function):
    TESTS[function.__name__] = function
    return function


def test_each_engine(function):
    """A test whose matter is taken by the engine for blocked time: it runs with each."""
    EACH_ENGINE.add(function.__name__)
    return test(function)


def check(condition, message):
    if not condition:
        raise Failure(message)


def check_close(what, got, want, relative=0.0, absolute=0.0):
    """got = want within relative * want or absolute, whichever is larger. Prints both, also where it passes."""
    tolerance = max(relative * abs(want), absolute)
    print(f"{what}: {got:.6g}, expected {want:.6g} (tolerance {tolerance:.6g})")
    check(abs(got - want) <= tolerance, f"{what}: got {got:.6g}, expected {want:.6g} within {tolerance:.6g}")


def check_share(what, part, whole, at_least=None, at_most=None):
    """Of times, or of Stacks: then a failure shows the heaviest of the whole."""
    shown = whole.top() if isinstance(whole, formats.Stacks) else ""
    part, whole = (x.time() if isinstance(x, formats.Stacks) else x for x in (part, whole))
    check(whole > 0, f"{what}: there is nothing to take a share of")
    share = part / whole
    print(f"{what}: {share:.4f}")
    for bound, fine in ((at_least, at_least is None or share >= at_least), (at_most, at_most is None or share <= at_most)):
        check(fine, f"{what}: {share:.4f} of {whole:.6g}, expected {bound}\n{shown}")


def die_with_parent():
    """In a child before its exec: it is killed when this process ends, however that happens."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def read_text(path):
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "surrogateescape")


def schedstat(pid, tid):
    """(time on a CPU, time waiting for one) in ns, or None when the thread is gone."""
    try:
        fields = read_text(f"/proc/{pid}/task/{tid}/schedstat").split()
        return int(fields[0]), int(fields[1])
    except (OSError, IndexError):
        return None


class Counters:
    """The kernel's counters of some processes, read every 20 ms with the wall clock beside them, so that what passed
    between two moments can be said afterwards."""

    def __init__(self, pids):
        self.pids = list(pids)
        self.history = {}  # tid -> [(wall_ns, on_cpu_ns, runnable_ns)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop.is_set():
            for pid in self.pids:
                try:
                    tids = os.listdir(f"/proc/{pid}/task")
                except OSError:
                    continue
                for tid in tids:
                    before = time.time_ns()
                    counters = schedstat(pid, tid)
                    if counters is not None:
                        moment = (before + time.time_ns()) // 2
                        self.history.setdefault(int(tid), []).append((moment, *counters))
            self._stop.wait(0.02)

    def stop(self):
        self._stop.set()
        self._thread.join()

    end = stop

    def _around(self, tid, wall_ns):
        """The last reading before a moment and the first one after it."""
        points = self.history[tid]
        after = next((i for i, point in enumerate(points) if point[0] >= wall_ns), len(points) - 1)
        return points[max(after - 1, 0)], points[after]

    def _at(self, tid, wall_ns):
        left, right = self._around(tid, wall_ns)
        part = min(max((wall_ns - left[0]) / max(right[0] - left[0], 1), 0), 1)
        return tuple(a + (b - a) * part for a, b in zip(left[1:], right[1:]))

    def check_on_cpu(self, what, seen, tid, begin_ns, end_ns, relative=0.05, absolute=30 * MS):
        """That a profile's on-CPU time between two moments of the wall clock is the kernel's."""
        on_cpu, _ = self.between(tid, begin_ns, end_ns)
        unsure, _ = self.uncertainty(tid, begin_ns, end_ns)
        check_close(what, seen, on_cpu, relative=relative, absolute=absolute + unsure)

    def uncertainty(self, tid, begin_ns, end_ns):
        """By how much between() may be wrong, since the readings at the ends lie a little apart."""
        if tid not in self.history:
            return 0, 0
        spans = [self._around(tid, moment) for moment in (begin_ns, end_ns)]
        return tuple(sum(right[i] - left[i] for left, right in spans) for i in (1, 2))

    def between(self, tid, begin_ns, end_ns):
        """(on-CPU, runnable) ns of a thread between two moments of the wall clock. A thread that was not there before
        counts from 0; one that ended keeps the last that was read of it."""
        if tid not in self.history:
            return 0, 0
        first = self.history[tid][0][0]
        begin = self._at(tid, begin_ns) if begin_ns >= first - 30 * MS else (0, 0)
        end = self._at(tid, end_ns)
        return end[0] - begin[0], end[1] - begin[1]


class Process:
    """A child whose stdout is read line by line and whose stdin takes lines."""

    def __init__(self, argv, **options):
        self.argv = [os.fsencode(str(a)) if not isinstance(a, bytes) else a for a in argv]
        self.child = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.pid = self.child.pid
        self.rusage = None
        self.status = None
        self._buffer = b""

    def read_line(self, timeout=10.0):
        """The next line of JSON that it prints; None at the end of its output."""
        deadline = time.monotonic() + timeout
        fd = self.child.stdout.fileno()
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([fd], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise Failure(f"{self.argv[0]!r} printed nothing for {timeout} s")
            data = os.read(fd, 65536)
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def read_lines_now(self):
        """All lines that are there already."""
        lines = []
        while b"\n" in self._buffer or select.select([self.child.stdout], [], [], 0)[0]:
            line = self.read_line()
            if line is None:
                break
            lines.append(line)
        return lines

    def write_line(self, text=""):
        self.child.stdin.write(text.encode() + b"\n")
        self.child.stdin.flush()

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self):
        """Reaps it; sets status (exit code, or minus the signal) and rusage."""
        if self.status is None:
            _, status, self.rusage = os.wait4(self.pid, 0)
            self.status = os.waitstatus_to_exitcode(status)
            self.child.returncode = self.status
        return self.status

    def alive(self):
        return os.path.exists(f"/proc/{self.pid}") and formats.proc_state(self.pid) not in "ZX"

    def end(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGCONT)
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        self.child.stdin.close()
        self.child.stdout.close()


class Result:
    """What a run of stallgraph left: exit code, stdout, stderr, files."""

    def __init__(self, code, stdout, stderr, base, seconds):
        self.code = code
        self.stdout = stdout
        self.stderr = stderr
        self.base = base
        self.seconds = seconds  # how long it ran
        self.counters = None  # of stallgraph itself, while it was waited for
        self._profile = None

    @property
    def profile(self):
        if self._profile is None:
            self._profile = formats.Speedscope.read(f"{self.base}.speedscope.json")
        return self._profile

    @property
    def folded(self):
        return formats.Folded.read(f"{self.base}.folded")

    @property
    def svg(self):
        return formats.Svg.read(f"{self.base}.svg")

    @property
    def pprof(self):
        return formats.Pprof.read(f"{self.base}.pb.gz")


class Collect:
    """A running stallgraph collect."""

    def __init__(self, argv, base, **options):
        self.base = base
        self.began = time.monotonic()
        self.stderr_file = tempfile.TemporaryFile()
        self.stdout_file = tempfile.TemporaryFile()
        options.setdefault("stdout", self.stdout_file)
        argv = [a if isinstance(a, bytes) else str(a) for a in argv]
        print("run:", " ".join(map(os.fsdecode, argv)), flush=True)
        before_exec = options.pop("preexec_fn", None)
        options["preexec_fn"] = lambda: (die_with_parent(), before_exec and before_exec())
        options.setdefault("stdin", subprocess.DEVNULL)
        self.child = subprocess.Popen(argv, stderr=self.stderr_file, **options)
        self.pid = self.child.pid

    def wait_started(self, timeout=20.0):
        """Waits until it says how it samples, which is when it has begun to."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self.child.poll() is None:
            if b"\n" in os.pread(self.stderr_file.fileno(), 4096, 0):
                break
            time.sleep(0.02)
        time.sleep(0.1)

    def signal(self, number):
        os.kill(self.pid, number)

    def finish(self, timeout=60.0):
        """Waits for its end; one that does not come is a failure."""
        watch = Counters([self.pid])
        try:
            code = self.child.wait(timeout)
        except subprocess.TimeoutExpired as error:
            self.child.kill()
            self.child.wait()
            raise Failure(f"stallgraph did not end within {timeout} s") from error
        finally:
            watch.stop()
        seconds = time.monotonic() - self.began
        texts = []
        for file in (self.stdout_file, self.stderr_file):
            file.seek(0)
            texts.append(file.read())
            file.close()
        stderr = texts[1].decode("utf-8", "backslashreplace")
        print(f"exit code {code} after {seconds:.2f} s; stderr:\n{stderr}", flush=True)
        result = Result(code, texts[0], stderr, self.base, seconds)
        result.counters = watch
        return result

    def end(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()


class Context:
    """One test's surroundings: a folder of its own, and everything that it started."""

    def __init__(self, binary, workloads, engine):
        self.binary = binary
        self.workload_dir = workloads
        self.engine = engine
        # Short and readable by anybody: tests run as nobody in it, and socket paths have a limit.
        self.dir = tempfile.mkdtemp(prefix="stallgraph-e2e-")
        os.chmod(self.dir, 0o755)
        self._started = []
        self._runs = 0

    def close(self):
        for process in reversed(self._started):
            try:
                process.end()
            except (ProcessLookupError, ChildProcessError, BrokenPipeError):
                pass
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def workload_path(self, name):
        path = os.path.join(self.workload_dir, name)
        if not os.path.exists(path):
            raise Skip(f"workload {name} was not built: its compiler or linker is not here")
        return path

    def copy_of(self, name, as_name=None):
        """A private copy of a workload, to be renamed, changed or deleted."""
        return shutil.copy(self.workload_path(name), self.path(as_name or name))

    def start(self, argv, **options):
        """Starts any program; its first line is read into .truth."""
        process = Process(argv, **options)
        self._started.append(process)
        process.truth = process.read_line()
        check(process.truth is not None, f"{argv[0]} ended before it was ready")
        return process

    def workload(self, name, *arguments, **options):
        return self.start([self.workload_path(name), *arguments], **options)

    def counters(self, *pids):
        return self.ends(Counters(pids))

    def ends(self, thing):
        """Has something ended with the test, however it ends: its end() is called, the latest thing's first."""
        self._started.append(thing)
        return thing

    def start_collect(self, *arguments, formats_wanted="speedscope", output=None, wrapper=(), **options):
        """stallgraph collect with the arguments, left running. wrapper: a command that runs it, such as setpriv."""
        self._runs += 1
        base = self.path(f"out{self._runs}")
        if output is not None:
            base = output.removesuffix(EXTENSIONS.get(formats_wanted, ""))
        argv = [*wrapper, self.binary, "collect"]
        # One format: OUT is the file's whole name; several: its beginning.
        name = output or base + ("" if "," in formats_wanted else EXTENSIONS[formats_wanted])
        argv += ["--format", formats_wanted, "-o", name]
        if self.engine != "auto":
            argv += ["--off-cpu", self.engine]
        # The test's own last: after "--" everything belongs to the command.
        collect = Collect(argv + list(arguments), base, **options)
        self._started.append(collect)
        return collect

    def collect(self, *arguments, duration=None, expect=WRITTEN, **options):
        """Runs stallgraph collect to its end. expect: exit codes, one of which it must have; None for any. Loss above the
        limit (3) is allowed unless a test is about it: on a busy machine few samples come, and each test says itself
        which share must have been seen."""
        if duration is not None:
            arguments = ("-d", duration, *arguments)
        result = self.start_collect(*arguments, **options).finish()
        check(expect is None or result.code in expect, f"exit code {result.code}, expected {expect}: {result.stderr}")
        return result

    def stallgraph(self, *arguments, **options):
        """Runs stallgraph with exactly these arguments."""
        collect = Collect([self.binary, *arguments], None, **options)
        self._started.append(collect)
        return collect.finish()

    def need_root(self):
        if os.geteuid() != 0:
            raise Skip("needs root")

    def need_program(self, name):
        if shutil.which(name) is None:
            raise Skip(f"needs {name}")
        return shutil.which(name)

    def binary_for_nobody(self):
        """A copy of stallgraph where everybody may run it: the build folder may be closed to others."""
        path = self.path("stallgraph")
        if not os.path.exists(path):
            shutil.copy(self.binary, path)
            os.chmod(path, 0o755)
        return path


def is_busy():
    """Whether others want more of this machine than it has, so that a measurement may be off through no fault of ours."""
    return os.getloadavg()[0] > 1.5 * os.cpu_count()


def attempt(name, binary, workloads, engine):
    context = Context(binary, workloads, engine)
    try:
        TESTS[name](context)
    finally:
        context.close()


def run_test(name, binary, workloads, engine):
    """0 passed, 1 failed, 77 skipped. On a busy machine a failure may be chance: it is tried again then, twice."""
    # What is tested is not how it does beside ten compilers: workloads, stallgraph and this all get their turn.
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    for left in (2, 1, 0):
        try:
            attempt(name, binary, workloads, engine)
            return 0
        except Skip as skip:
            print(f"SKIP {name}: {skip}")
            return 77
        except (Failure, formats.BadFormat) as failure:
            print(f"FAIL {name}: {failure}", file=sys.stderr, flush=True)
            if left == 0 or not is_busy():
                break
            print(f"once more: the load average is {os.getloadavg()[0]:.1f}", flush=True)
    return 1
