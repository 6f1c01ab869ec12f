"""What blocked threads wait for, and whether that is idle: workloads with one thread for each kind of wait, which say
themselves what each of them waits for."""

import os
import subprocess

from harness import Skip, check, check_share, test


def fits(said, seen):
    return seen.startswith(said[:-1]) if said.endswith("*") else seen == said


def waits_of(t, name, **options):
    process = t.workload(name, **options)
    return process, [process.read_line() for _ in range(process.truth["threads"])]


def judge(profile, truths):
    """[(truth, wait that was seen most, whether it was idle)] of those that are not as they say."""
    wrong = []
    for truth in truths:
        times = {}
        for stack, ns, state in profile.thread(truth["tid"]).without_gaps().samples:
            key = (stack[-1], state == "idle")
            times[key] = times.get(key, 0) + ns
        wait, idle = max(times, key=times.get)
        if not fits(truth["wait"], wait) or idle != truth["idle"]:
            wrong.append((truth, wait, idle))
    return wrong


def show(wrong):
    return "\n".join(f"  {truth}: seen {wait}, {'idle' if idle else 'blocked'}" for truth, wait, idle in wrong)


@test
def waits_are_named_and_judged(t):
    """The labelled set: at least 40 threads, eight kinds of five or more; 95 % right, and no dependency called idle."""
    truths, wrong, kinds = [], [], {}
    for name in ("wait_sockets", "wait_places"):
        process, said = waits_of(t, name)
        result = t.collect("-p", process.pid, "--no-children", "--threads", "each", duration=2, formats_wanted="speedscope,folded")
        truths += said
        wrong += judge(result.profile, said)
        check_folded(result.folded, said)
    for truth in truths:
        kinds.setdefault(truth["kind"], []).append(truth)
    print({kind: len(of_kind) for kind, of_kind in kinds.items()}, "wrong:\n" + show(wrong))
    check(len(truths) >= 40, f"only {len(truths)} situations")
    full = [kind for kind, of_kind in kinds.items() if len(of_kind) >= 5]
    check(len(full) >= 8 or "page fault" not in kinds, f"kinds with five or more: {full}")
    check(len(wrong) <= len(truths) * 0.05, f"{len(wrong)} of {len(truths)} are wrong:\n{show(wrong)}")
    idle = [one for one in wrong if one[0]["kind"] == "dependency" and one[2]]
    check(not idle, f"dependencies called idle:\n{show(idle)}")


def check_folded(folded, truths):
    """The same texts, and the idle ones under [idle]."""
    wrong = []
    for truth in truths:
        leaves = {
            (stack[-1], stack[0] == "[idle]")
            for stack, _, _ in folded.samples
            if any(frame.startswith(truth["name"]) and str(truth["tid"]) in frame for frame in stack[:3])
        }
        if not any(fits(truth["wait"], leaf) and idle == truth["idle"] for leaf, idle in leaves):
            wrong.append((truth, leaves))
    check(len(wrong) <= len(truths) * 0.05, f"folded differs: {wrong}")


@test
def rules_of_the_user_prevail(t):
    """--idle-rule and --busy-rule are matched against frame names; --idle hide leaves idle stacks out of folded."""
    process, truths = waits_of(t, "wait_places")
    by_name = {truth["name"]: truth for truth in truths}
    arguments = ("-p", process.pid, "--no-children", "--idle-rule", "^handle_", "--busy-rule", "next_j.b$")
    result = t.collect(*arguments, duration=1)
    for name, state in (("in-request", "idle"), ("waits-for-work", "blocked"), ("locks-named", "blocked"), ("naps", "idle")):
        thread = result.profile.thread(by_name[name]["tid"])
        check_share(f"{name} {state}", thread.state(state), thread.without_gaps(), at_least=0.95)
    names = t.collect(*arguments, "--idle", "hide", duration=1, formats_wanted="speedscope,folded").folded.names()
    check("handle_request" not in names and "[idle]" not in names, "idle stacks are not hidden")
    check("waits_for_work" in names, "a stack that is busy by rule is missing")
    refused = t.stallgraph("collect", "--idle-rule", "(", "-p", process.pid)
    check(refused.code == 2 and "--idle-rule" in refused.stderr, f"a broken expression: {refused.code} {refused.stderr}")


# A thread polls; then the array that it gave is taken away, so that whoever reads it waits for ever.
HANGS = """
import ctypes, os, struct, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
at = libc.mmap(None, 4096, 3, 0x22, -1, 0)
ctypes.memmove(at, struct.pack("=iHHiHH", os.pipe()[0], 1, 0, os.pipe()[0], 1, 0), 16)
poller = threading.Thread(target=lambda: libc.poll(ctypes.c_void_p(at), 2, -1), daemon=True)
poller.start()
time.sleep(0.2)
fd = libc.syscall(323, os.O_CLOEXEC)
api = struct.pack("=QQQ", 0xAA, 0, 0)
area = struct.pack("=QQQQ", at, 4096, 1, 0)
made = fd >= 0 and libc.ioctl(fd, 0xC018AA3F, api) == 0 and libc.ioctl(fd, 0xC020AA00, area) == 0
made = made and libc.madvise(ctypes.c_void_p(at), 4096, 4) == 0
print('{"made": %s, "tid": %d}' % ("true" if made else "false", poller.native_id), flush=True)
time.sleep(1000)
"""

SERVER = """
import socket, sys
server = socket.create_server((sys.argv[1], int(sys.argv[2])))
open("/proc/self/comm", "w").write("far-server")
print('{"ready": true}', flush=True)
kept = [server.accept() for _ in range(2)]
sys.stdin.read()
"""
CLIENT = """
import json, socket, sys, threading
made = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print(json.dumps({"ready": True}), flush=True)
made.recv(1)
"""


@test
def far_ends_in_other_namespaces_are_found(t):
    """A server in a network namespace of its own, as a container's, is known by its program; a port that nobody here
    holds, by its number."""
    t.need_root()
    ip = t.need_program("ip")
    name, link = f"sg{os.getpid()}", f"sg{os.getpid() % 10000}"
    run = lambda *argv: subprocess.run([ip, *argv], check=True, capture_output=True, text=True)
    try:
        run("netns", "add", name)
    except subprocess.CalledProcessError as error:
        raise Skip(f"no network namespaces here: {error.stderr}") from error
    t.ends(Namespace(ip, name))
    try:
        run("link", "add", f"{link}a", "type", "veth", "peer", "name", f"{link}b", "netns", name)
    except subprocess.CalledProcessError as error:
        raise Skip(f"no veth here: {error.stderr}") from error
    run("addr", "add", "198.18.77.1/30", "dev", f"{link}a")
    run("link", "set", f"{link}a", "up")
    run("-n", name, "addr", "add", "198.18.77.2/30", "dev", f"{link}b")
    run("-n", name, "link", "set", f"{link}b", "up")
    server = t.start([ip, "netns", "exec", name, "/usr/bin/python3", "-c", SERVER, "198.18.77.2", "6543"])
    client = t.start(["/usr/bin/python3", "-c", CLIENT, "198.18.77.2", "6543"])
    profile = t.collect("-p", client.pid, duration=1).profile
    wait = "[wait: tcp 198.18.77.2:6543 far-server]"
    check_share(wait, profile.all_threads.having(wait), profile.all_threads, at_least=0.9)
    # And from within: the server's namespace is not ours.
    profile = t.collect("-p", server.pid, duration=1).profile
    wait = "[wait: accept tcp :6543]"
    check_share(wait, profile.all_threads.having(wait).state("idle"), profile.all_threads, at_least=0.9)


class Namespace:
    def __init__(self, ip, name):
        self.ip, self.name = ip, name

    def end(self):
        subprocess.run([self.ip, "netns", "delete", self.name], capture_output=True)


@test
def hanging_memory_does_not_stop_naming(t):
    """The array of a poll lies in memory that nobody fills: the wait is named without it, and the rest as ever."""
    t.need_root()
    target = t.start(["/usr/bin/python3", "-c", HANGS])
    if not target.truth["made"]:
        raise Skip("no userfaultfd here")
    result = t.collect("-p", target.pid, duration=1)
    check(result.seconds < 20, f"the profile took {result.seconds} s")
    poller = result.profile.thread(target.truth["tid"])
    check_share("[wait: poll]", poller.having("[wait: poll]"), poller.without_gaps(), at_least=0.9)
    main = result.profile.thread(target.pid)
    check_share("[wait: sleep]", main.having("[wait: sleep]"), main.without_gaps(), at_least=0.9)


@test
def lock_owners_are_known(t):
    """Who holds the lock that eight threads wait for, and what it does meanwhile."""
    process = t.workload("lock_owner")
    result = t.collect("-p", process.pid, duration=3)
    own = result.profile.own
    names = [frame["name"] for frame in result.profile.frames]
    waits = [wait for wait in own["locks"] if "cache_mu" in names[wait["stack"][-1]]]
    waited = sum(wait["waitedNs"] for wait in waits)
    held = sum(
        wait["waitedNs"]
        for wait in waits
        if "owner" in wait
        and own["threads"][wait["owner"]]["tid"] == process.truth["holder"]
        and "refresh_cache" in [names[frame] for frame in wait["ownerStack"]]
        and names[wait["ownerStack"][-1]] == "[wait: sleep]"
    )
    check(waited > 3e9, f"only {waited / 1e9:.2f} s of waiting for the lock are told of")
    check_share("waiting whose owner is known to sleep in refresh_cache", held, waited, at_least=0.85)
