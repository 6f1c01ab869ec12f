"""How it ends, what it refuses, and what it leaves behind."""

import fcntl
import os
import re
import signal
import stat
import subprocess
import time

import formats
from harness import MS, WRITTEN, Skip, check, check_close, test

NO_SUCH_PID = 4_194_300


def check_refusal(result, code=1, mentions=None, within_s=3.0):
    """One line, the right exit code, at once."""
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    check(result.code == code, f"exit code {result.code}, expected {code}")
    check(len(lines) == 1 and lines[0].startswith("stallgraph: "), f"not one line: {lines}")
    check(result.stdout == b"", f"stdout holds {result.stdout[:200]!r}")
    check(mentions is None or re.search(mentions, lines[0], re.I), f"{mentions!r} is not mentioned: {lines[0]}")
    check(result.seconds < within_s, f"took {result.seconds:.2f} s")


def refuse(t, *arguments, **checks):
    folder = t.path("cwd")
    os.makedirs(folder, exist_ok=True)
    check_refusal(t.stallgraph(*arguments, cwd=folder), **checks)
    check(os.listdir(folder) == [], f"left behind: {os.listdir(folder)}")


@test
def pid_that_does_not_exist_is_refused(t):
    refuse(t, "collect", "-p", NO_SUCH_PID, mentions=str(NO_SUCH_PID))


@test
def zombie_is_refused(t):
    child = subprocess.Popen(["true"])
    while formats.proc_state(child.pid) != "Z":
        time.sleep(0.01)
    try:
        refuse(t, "collect", "-p", child.pid, mentions="zombie")
    finally:
        child.wait()


@test
def kernel_thread_is_refused(t):
    for name in os.listdir("/proc"):
        if name.isdigit() and name != str(os.getpid()):
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if int(fields[6]) & 0x200000:
                refuse(t, "collect", "-p", name, mentions="kernel thread")
                return
    raise Skip("no kernel thread is to be seen here")


@test
def wrong_usage_is_exit_code_2(t):
    me = os.getpid()
    wrong = [
        ["collect"],
        ["collect", "-p"],
        ["collect", "-p", "abc"],
        ["collect", "-p", "-1"],
        ["collect", "-p", "0"],
        ["collect", "-p", "1x"],
        ["collect", "-p", "99999999999999999999"],
        ["collect", "-p", me, "-d", "soon"],
        ["collect", "-p", me, "-d", "-1"],
        ["collect", "-p", me, "-F", "0"],
        ["collect", "-p", me, "-F", "nan"],
        ["collect", "-p", me, "--format", "nonsense"],
        ["collect", "-p", me, "--format", "folded,nonsense"],
        ["collect", "-p", me, "--format", ""],
        ["collect", "-p", me, "--mode", "sideways"],
        ["collect", "-p", me, "--no-such-option"],
        ["collect", "-p", me, "stray"],
        ["collect", "-p", me, "-n", "both"],
        ["collect", "-p", me, "--format", "folded,svg", "-o", "-"],
        ["collect", "-o", "-", "--", "true"],
        ["nonsense"],
        [],
    ]
    for arguments in wrong:
        result = t.stallgraph(*arguments, cwd=t.dir)
        check(result.code == 2, f"{arguments}: exit code {result.code}, expected 2")
        check(result.stderr.startswith("stallgraph: ") or "usage" in result.stderr, f"{arguments}: {result.stderr!r}")
        check(result.stdout == b"", f"{arguments}: stdout holds {result.stdout[:100]!r}")


@test
def help_and_version_go_to_stdout(t):
    cases = ((["--help"], b"collect"), (["collect", "--help"], b"--duration"), (["--version"], b"stallgraph"))
    for arguments, word in cases:
        result = t.stallgraph(*arguments)
        check(result.code == 0, f"{arguments}: exit code {result.code}")
        check(word in result.stdout and result.stderr == "", f"{arguments}: {result.stdout[:200]!r}, {result.stderr!r}")


@test
def unwritable_output_is_refused_before_sampling(t):
    target = t.workload("busy")
    folder = t.path("folder")
    os.mkdir(folder)
    for output in ("/none/x", folder, f"{t.path('busy-not-a-folder')}/x", "/proc/x"):
        result = t.stallgraph("collect", "-p", target.pid, "-d", 10, "-o", output)
        check_refusal(result, code=1, mentions=re.escape(output))
    check(os.listdir(folder) == [], f"left behind: {os.listdir(folder)}")


@test
def full_disk_leaves_nothing_half_written(t):
    """A tmpfs of 8 KiB: exit code 1, the cause said, no file."""
    t.need_root()
    t.need_program("unshare")
    target = t.workload("ping_pong")
    folder = t.path("small")
    os.mkdir(folder)
    script = (
        'mount -t tmpfs -o size=8k none "$1" && folder=$1 && shift && "$@"; code=$?; '
        'test -z "$(ls -A "$folder")" || { echo "left behind: $(ls -lA "$folder")" >&2; exit 99; }; exit $code'
    )
    wrapper = ("unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", folder)
    result = t.collect("-p", target.pid, duration=1, wrapper=wrapper, output=f"{folder}/x.speedscope.json", expect=None)
    check(result.code == 1, f"exit code {result.code}")
    check("No space left" in result.stderr, f"the cause is not said: {result.stderr}")


@test
def device_is_written_not_replaced(t):
    """-o of a device: it is written to, and its error is an error; the device is still one afterwards."""
    t.need_root()
    target = t.workload("busy")
    device = t.path("full")
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
        open(device, "wb").close()
    except OSError as error:
        raise Skip(f"no devices in this folder: {error}") from error
    result = t.collect("-p", target.pid, duration=0.5, formats_wanted="folded", output=device, expect=None)
    check(stat.S_ISCHR(os.stat(device).st_mode), "the device was replaced by a file")
    check(result.code == 1, f"exit code {result.code} although nothing could be written")


@test
def closed_pipe_is_no_crash(t):
    """stdout goes to a reader that takes one byte and leaves."""
    target = t.workload("ping_pong")
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)  # so that not all of it fits in
    collect = t.start_collect("-p", target.pid, "-d", 1, output="-", stdout=writing)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    result = collect.finish()
    check(result.code == 1, f"exit code {result.code}")
    check_one_error(result)


def check_one_error(result):
    errors = [line for line in result.stderr.splitlines() if line.startswith("stallgraph: ")]
    check(len(errors) == 1, f"errors: {errors}")


@test
def stdout_holds_the_data_and_nothing_else(t):
    target = t.workload("burn_and_nap")
    result = t.collect("-p", target.pid, duration=1, formats_wanted="folded", output="-")
    folded = formats.Folded.parse(result.stdout)
    check(folded.having("main", "nap").time() > 0, f"nap not seen:\n{folded.top()}")
    check(os.listdir(t.dir) == [], f"files: {os.listdir(t.dir)}")


@test
def gzip_by_name(t):
    target = t.workload("burn_and_nap")
    path = t.path("x.speedscope.json.gz")
    t.collect("-p", target.pid, duration=0.7, output=path)
    with open(path, "rb") as file:
        check(file.read(2) == b"\x1f\x8b", "not gzipped")
    check(formats.Speedscope.read(path).thread(target.pid).having("nap").time() > 0, "nap not seen")
    # pprof is packed anyway: under any name, and never twice.
    t.collect("-p", target.pid, duration=0.7, formats_wanted="folded,pprof", output=t.path("y.gz"))
    t.collect("-p", target.pid, duration=0.7, formats_wanted="pprof", output=t.path("z.gz"))
    t.collect("-p", target.pid, duration=0.7, formats_wanted="pprof", output=t.path("z.pb"))
    check(sorted(os.listdir(t.dir))[1:] == ["y.folded.gz", "y.pb.gz", "z.gz", "z.pb"], f"files: {os.listdir(t.dir)}")
    for name in ("y.pb.gz", "z.gz", "z.pb"):
        check(formats.Pprof.read(t.path(name)).having("nap").time() > 0, f"nap not seen in {name}")


@test
def default_name_tells_program_pid_and_time(t):
    target = t.workload("burn_and_nap")
    folder = t.path("cwd")
    os.mkdir(folder)
    for extra in ((), ("--format", "folded,svg,pprof")):
        result = t.stallgraph("collect", "-p", target.pid, "-d", "0.5", *extra, cwd=folder)
        check(result.code in WRITTEN, f"exit code {result.code}")
    names = sorted(os.listdir(folder))
    pattern = rf"burn_and_nap_{target.pid}_\d{{8}}_\d{{6}}(\.folded|\.svg|\.pb\.gz|\.speedscope\.json)"
    check(all(re.fullmatch(pattern, name) for name in names), f"files: {names}")
    extensions = {name[name.index(".") :] for name in names}
    check(len(names) == 4 and len(extensions) == 4, f"files: {names}")
    modes = {oct(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) & 0o022) for name in names}
    check(modes == {"0o0"}, f"others can write the files: {modes}")


@test
def existing_file_is_replaced_at_once(t):
    """The old file stays until the new one is whole, and a failed run leaves it alone."""
    target = t.workload("burn_and_nap")
    path = t.path("x.folded")
    with open(path, "wb") as file:
        file.write(b"old")
    collect = t.start_collect("-p", target.pid, "-d", 1, formats_wanted="folded", output=path)
    collect.wait_started()
    with open(path, "rb") as file:
        check(file.read() == b"old", "the old file is gone before the new one is there")
    check(collect.finish().code in WRITTEN, "no profile")
    check(formats.Folded.read(path).time() > 0, "nothing new")
    check(os.listdir(t.dir) == ["x.folded"], f"files: {os.listdir(t.dir)}")


def interrupt(t, number):
    target = t.workload("burn_and_nap")
    collect = t.start_collect("-p", target.pid, "-d", 60)
    collect.wait_started()
    time.sleep(1.5)
    collect.signal(number)
    signalled = time.monotonic()
    result = collect.finish(10)
    check(result.code == 0, f"exit code {result.code}")
    check(time.monotonic() - signalled < 2, "took long to write")
    profile = result.profile
    check(profile.duration_ns > 1_500 * MS, f"only {profile.duration_ns / 1e9:.2f} s")
    check_close("all states", profile.thread(target.pid).without_gaps().time(), profile.duration_ns, relative=0.01)
    check(target.alive(), "the target is gone")


@test
def ctrl_c_writes_what_there_is(t):
    interrupt(t, signal.SIGINT)


@test
def sigterm_writes_what_there_is(t):
    interrupt(t, signal.SIGTERM)


@test
def second_signal_ends_at_once(t):
    """Two signals, one right after the other: it ends within a second, with a whole file or none."""
    target = t.workload("ping_pong")
    collect = t.start_collect("-p", target.pid, "-d", 60)
    collect.wait_started()
    time.sleep(1)
    collect.signal(signal.SIGINT)
    time.sleep(0.02)
    collect.signal(signal.SIGINT)
    signalled = time.monotonic()
    result = collect.finish(10)
    check(time.monotonic() - signalled <= 1.0, f"went on for {time.monotonic() - signalled:.2f} s")
    names = os.listdir(t.dir)
    check(names in ([], ["out1.speedscope.json"]), f"left behind: {names}")
    if names:
        check(result.profile.threads, "an empty file")


@test
def durations_of_every_spelling(t):
    target = t.workload("nested_sleep")
    for spelling, seconds in (("0.5", 0.5), ("300ms", 0.3), ("1s", 1), ("00:00:01", 1), ("00:00:00:01", 1)):
        profile = t.collect("-p", target.pid, duration=spelling).profile
        check_close(f"-d {spelling}", profile.duration_ns / 1e9, seconds, relative=0.02, absolute=0.1)


@test
def name_finds_one_process(t):
    """-n NAME: the exact name; several are an error that lists their pids."""
    program = t.copy_of("burn_and_nap", "only-one-here")
    first = t.start([program])
    profile = t.collect("-n", "only-one-here", duration=0.7).profile
    check(profile.tids() == {first.pid}, f"threads: {profile.tids()}")
    second = t.start([program])
    result = t.stallgraph("collect", "-n", "only-one-here", "-d", 1)
    check(result.code in (1, 2), f"exit code {result.code}")
    for process in (first, second):
        check(str(process.pid) in result.stderr, f"{process.pid} is not listed: {result.stderr}")
    refuse(t, "collect", "-n", "only-one", mentions="only-one")


@test
def command_keeps_its_exit_code_and_output(t):
    """-- COMMAND: its own code, 128+n for a signal, and its own stdout."""
    for script, code in (("echo out; exit 7", 7), ("echo out; exit 0", 0), ("echo out; kill -TERM $$", 143)):
        # So short a command may be over before a sample is taken: that is no loss to speak of here.
        result = t.collect("--max-loss", 100, "--", "sh", "-c", script, expect=None)
        check(result.code == code, f"{script}: exit code {result.code}, expected {code}")
        check(result.stdout == b"out\n", f"{script}: stdout {result.stdout!r}")
        check(result.profile is not None, "no profile")


@test
def command_that_cannot_start_is_125(t):
    result = t.stallgraph("collect", "-o", t.path("x.speedscope.json"), "--", "/no/such/program")
    check(result.code == 125, f"exit code {result.code}")
    check("/no/such/program" in result.stderr, f"not named: {result.stderr}")
    check(os.listdir(t.dir) == [], f"left behind: {os.listdir(t.dir)}")


@test
def command_is_profiled_from_its_start(t):
    result = t.collect("--max-loss", 100, "--", t.workload_path("busy"), "1000", expect=None)
    check(result.code == 0, f"exit code {result.code}")
    profile = result.profile
    on = profile.all_threads.state("on-cpu")
    lines = [line for line in result.stdout.splitlines() if b"cpu_ns" in line]
    used_ns = formats.json.loads(lines[0])["cpu_ns"]
    check_close("on-CPU", on.time(), used_ns, relative=0.05, absolute=30 * MS)
    check(on.having("main", "middle", "hot_leaf").time() > 0.8 * used_ns, f"not named:\n{on.top()}")


@test
def command_runs_on_after_the_duration(t):
    """After -d the command is waited for, not killed."""
    began = time.monotonic()
    result = t.collect("-d", 0.5, "--max-loss", 100, "--", "sh", "-c", "sleep 1.5; echo done", expect=None)
    check(result.code == 0 and result.stdout == b"done\n", f"exit code {result.code}, stdout {result.stdout!r}")
    check(time.monotonic() - began >= 1.5, "ended before the command")
    check_close("window", result.profile.duration_ns / 1e9, 0.5, absolute=0.15)


@test
def quiet_says_nothing(t):
    target = t.workload("burn_and_nap")
    result = t.collect("-p", target.pid, "-q", "--summary", "none", duration=0.7)
    check(result.stderr == "", f"stderr: {result.stderr!r}")
