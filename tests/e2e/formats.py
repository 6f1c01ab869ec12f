"""Readers of what stallgraph writes, independent of its own code. Every file that a test looks at is checked for its
form as it is read."""

import gzip
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import read_pprof  # noqa: E402

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
UNITS_NS = {"nanoseconds": 1, "microseconds": 1_000, "milliseconds": 1_000_000, "seconds": 1_000_000_000}


class BadFormat(AssertionError):
    pass


def require(condition, message):
    if not condition:
        raise BadFormat(message)


def proc_state(pid):
    """The letter of /proc/PID/stat, "" when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0].decode()
    except (OSError, IndexError):
        return ""


def read_bytes(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def state_of(stack):
    """What a stack says of its thread by its leaf alone: on-cpu, runnable, blocked, stopped, lost, or gap."""
    if not stack:
        return "gap"
    leaf = stack[-1]
    if leaf in ("[runnable]", "[throttled]"):
        return "runnable"
    if leaf == "[stopped]":
        return "stopped"
    if leaf == "[lost]":
        return "lost"
    if leaf.startswith("[wait: ") or leaf.startswith("[blocked"):
        return "blocked"
    return "on-cpu"


def in_order(stack, names):
    """Whether the names stand in the stack in this order, others between them allowed."""
    position = 0
    for frame in stack:
        if position < len(names) and frame == names[position]:
            position += 1
    return position == len(names)


def adjacent(stack, names):
    """Whether the names stand in the stack one directly below the other."""
    width = len(names)
    return any(tuple(stack[i : i + width]) == tuple(names) for i in range(len(stack) - width + 1))


class Stacks:
    """Weighted stacks, root first: [(names, nanoseconds, state)], in time order where there is one. The state is what
    the file says where it says one, else what the leaf says."""

    def __init__(self, name, samples):
        self.name = name
        self.samples = [sample if len(sample) == 3 else (*sample, state_of(sample[0])) for sample in samples]

    def select(self, keep):
        """Those whose names a function likes."""
        return Stacks(self.name, [sample for sample in self.samples if keep(sample[0])])

    def state(self, *states):
        return Stacks(self.name, [sample for sample in self.samples if sample[2] in states])

    def waiting(self):
        """Off the CPU and wanting none."""
        return self.state("blocked", "idle")

    def sampled(self):
        """Without time of which no stack is known."""
        return self.select(lambda stack: stack and stack[-1] not in ("[unsampled]", "[lost]"))

    def having(self, *names):
        return self.select(lambda stack: in_order(stack, names))

    def with_chain(self, *names):
        return self.select(lambda stack: adjacent(stack, names))

    def without_gaps(self):
        return self.select(bool)

    def time(self):
        return sum(ns for _, ns, _ in self.samples)

    def sums(self):
        """Nanoseconds by stack."""
        sums = {}
        for stack, ns, _ in self.samples:
            sums[stack] = sums.get(stack, 0) + ns
        return sums

    def names(self):
        return {frame for stack, _, _ in self.samples for frame in stack}

    def runs(self):
        """[(start, nanoseconds, names)] from the profile's start."""
        at, result = 0, []
        for stack, ns, _ in self.samples:
            result.append((at, ns, stack))
            at += ns
        return result

    def top(self, count=8):
        """The heaviest stacks, for messages."""
        rows = sorted(self.sums().items(), key=lambda item: -item[1])[:count]
        return "\n".join(f"  {ns / 1e6:10.1f} ms  {';'.join(stack)}" for stack, ns in rows)


class Thread(Stacks):
    """One thread's profile, with what the file says of it under our own keys. Times in nanoseconds."""

    def __init__(self, name, samples, info, states):
        super().__init__(name, samples)
        self.tid = info["tid"]
        self.info = info
        self.lifetime = info["lifetimeNs"]
        self.times = dict(zip(states, info["timeNs"]))
        self.kernel_on_cpu = info.get("kernelOnCpuNs")
        self.kernel_runnable = info.get("kernelRunnableNs")


class Speedscope:
    """A speedscope file of ours. all_threads is its first profile, threads are the others."""

    def __init__(self, data):
        require(data.get("$schema") == SCHEMA, "the $schema of speedscope is missing")
        self.data = data
        self.own = data["stallgraph"]
        self.loss = self.own["loss"]
        self.frames = data["shared"]["frames"]
        for frame in self.frames:
            require(isinstance(frame.get("name"), str) and frame["name"], f"a frame without a name: {frame}")
        profiles, threads = data["profiles"], self.own["threads"]
        require(len(profiles) >= 1, "no profile")
        require(0 <= data.get("activeProfileIndex", 0) < len(profiles), "activeProfileIndex out of range")
        require(len(threads) == len(profiles) - 1, f"{len(threads)} threads but {len(profiles)} profiles")
        self.all_threads = Stacks(profiles[0]["name"], self._samples(profiles[0]))
        self.threads = [
            Thread(profile["name"], self._samples(profile), info, self.own["states"])
            for profile, info in zip(profiles[1:], threads)
        ]
        ends = {(profile["startValue"], profile["endValue"]) for profile in profiles[1:]}
        require(len(ends) <= 1, f"threads do not share their start and end: {ends}")
        self.start_wall_ns = self.own["startUnixSeconds"] * 1_000_000_000 + self.own["startUnixNanoseconds"]
        self.duration_ns = self.own["durationNs"]
        self.end_wall_ns = self.start_wall_ns + self.duration_ns

    def _samples(self, profile):
        require(profile["type"] == "sampled", f"type {profile['type']}")
        require(profile["unit"] in UNITS_NS, f"the unit {profile['unit']} is no time")
        samples, weights, states = profile["samples"], profile["weights"], profile["stallgraph"]["states"]
        require(len(samples) == len(weights) == len(states), "samples, weights and states differ in number")
        require(all(isinstance(w, int) and w >= 0 for w in weights), "a weight that is negative or no whole number")
        span = profile["endValue"] - profile["startValue"]
        require(span == sum(weights), f"weights add up to {sum(weights)}, not {span}")
        scale = UNITS_NS[profile["unit"]]
        result = []
        for indices, weight, state in zip(samples, weights, states):
            require(all(0 <= i < len(self.frames) for i in indices), "a frame index out of range")
            stack = tuple(self.frames[i]["name"] for i in indices)
            said = "gap" if state < 0 else self.own["states"][state]
            seen = state_of(stack)
            # [lost]: what it did may be known all the same.
            require(seen in ("lost", {"idle": "blocked"}.get(said, said)), f"state {said}, but the stack is {stack}")
            result.append((stack, weight * scale, said))
        return result

    @classmethod
    def read(cls, path):
        return cls(json.loads(read_bytes(path).decode("utf-8")))

    def thread(self, tid):
        found = [thread for thread in self.threads if thread.tid == tid]
        require(len(found) == 1, f"{len(found)} threads {tid} among {[(t.tid, t.name) for t in self.threads]}")
        return found[0]

    def tids(self):
        return {thread.tid for thread in self.threads}

    def has_engine(self, name):
        return f"blocked: {name}" in self.own["engines"]

    def names_of_kind(self, kind):
        return {frame["name"] for frame in self.frames if frame.get("kind", "user") == kind}

    def offset_of(self, wall_ns):
        """A moment of the wall clock as nanoseconds from the profile's start."""
        return wall_ns - self.start_wall_ns

    def threads_total_ns(self):
        return sum(thread.without_gaps().time() for thread in self.threads)


class Folded(Stacks):
    LINE = re.compile(r"^(.+) ([0-9]+)$")

    @classmethod
    def parse(cls, data):
        text = data.decode("utf-8")
        require(text == "" or text.endswith("\n"), "the last line is not terminated")
        samples, lines = [], text.split("\n")[:-1]
        for line in lines:
            match = cls.LINE.match(line)
            require(match is not None, f"no folded line: {line!r}")
            require(not any(ord(c) < 32 or ord(c) == 127 for c in line), f"control byte in {line!r}")
            frames = tuple(match.group(1).split(";"))
            require(all(frames), f"an empty frame in {line!r}")
            samples.append((frames, int(match.group(2)) * 1000))
        stacks = [stack for stack, _ in samples]
        require(len(set(stacks)) == len(stacks), "a stack has two lines")
        paths = [";".join(stack).encode() for stack in stacks]
        require(paths == sorted(paths), "lines are not sorted")
        return cls("folded", samples)

    @classmethod
    def read(cls, path):
        return cls.parse(read_bytes(path))


class SvgFrame:
    """A rectangle of the flame graph: x and width in percent of the whole, depth in rows from the top."""

    def __init__(self, title, x, width, y):
        self.title, self.x, self.width, self.y = title, x, width, y

    def label(self):
        return self.title.split("\n")[0]

    def inside(self, other):
        return other.x - 1e-5 <= self.x and self.x + self.width <= other.x + other.width + 1e-5


class Svg:
    NS = "{http://www.w3.org/2000/svg}"

    def __init__(self, data):
        self.root = xml.etree.ElementTree.fromstring(data)
        require(self.root.tag == self.NS + "svg", f"the root is {self.root.tag}")
        self.total = int(self.root.get("data-total-us"))
        self.frames = self._frames()

    @classmethod
    def read(cls, path):
        if has_xmllint():
            lint = subprocess.run(["xmllint", "--noout", path], capture_output=True, check=False)
            require(lint.returncode == 0, f"xmllint: {lint.stderr}")
        return cls(read_bytes(path))

    def total_us(self):
        return self.total

    def _frames(self):
        frames = []
        for area in self.root.iter(self.NS + "svg"):
            if area.get("class") != "frames":
                continue
            for group in area.iter(self.NS + "g"):
                rect, title = group.find(self.NS + "rect"), group.find(self.NS + "title")
                require(rect is not None and title is not None, "a frame without its rectangle or its tooltip")
                x, width = (float(rect.get(key).rstrip("%")) for key in ("x", "width"))
                frames.append(SvgFrame(title.text, x, width, float(rect.get("y"))))
        return frames

    def stacks(self):
        """The picture read back: each frame's own time, nanoseconds, with the names from the root on."""
        below = {frame: 0.0 for frame in self.frames}
        paths, samples, above = {}, [], []
        for y in sorted({frame.y for frame in self.frames}):
            row = [frame for frame in self.frames if frame.y == y]
            for frame in row:
                parents = [parent for parent in above if frame.inside(parent)]
                require(len(parents) == 1 or not above, f"{frame.label()} lies in {len(parents)} parents")
                paths[frame] = (*paths.get(parents[0] if parents else None, ()), frame.label())
                for parent in parents:
                    below[parent] += frame.width
            above = row
        for frame in self.frames:
            own = frame.width - below[frame]
            require(own > -1e-3, f"the children of {frame.label()} are wider than it")
            samples.append((paths[frame], round(max(own, 0.0) / 100 * self.total) * 1000))
        return Stacks("svg", [(stack, ns) for stack, ns in samples if ns > 0])


class Pprof(Stacks):
    """A profile.proto: its samples as stacks, with the state that they are labelled with."""

    VALUES = ["samples", "on-cpu", "runnable", "blocked", "idle", "wall"]
    LABELS = {"process", "pid", "thread", "tid", "state"}

    def __init__(self, data):
        try:
            self.profile = read_pprof.Profile(data)
        except read_pprof.Fault as fault:
            raise BadFormat(str(fault)) from fault
        samples = []
        require([name for name, _ in self.profile.types] == self.VALUES, f"values {self.profile.types}")
        for sample in self.profile.samples:
            state, values = sample.labels.get("state"), sample.values
            by_state = {name: values[name] for name in self.VALUES[1:-1] if values[name] > 0}
            wanted = {} if state in ("stopped", "unknown") else {state: values["wall"]}
            require(values["wall"] > 0 and values["samples"] > 0, f"a sample of nothing: {values}")
            require(by_state == wanted, f"{state}, but the values are {values}")
            require(not any(ord(c) < 32 or ord(c) == 127 for name in sample.stack for c in name), "control bytes")
            samples.append((sample.stack, values["wall"], "lost" if state == "unknown" else state))
        super().__init__("pprof", samples)

    @classmethod
    def read(cls, path):
        with open(path, "rb") as file:
            data = file.read()
        require(data[:2] == b"\x1f\x8b" and gzip.decompress(data)[:2] != b"\x1f\x8b", "not packed once")
        return cls(data)

    def labelled(self, key, text):
        """Those of one thread, pool, process, ..."""
        pairs = zip(self.samples, self.profile.samples)
        return Stacks(self.name, [sample for sample, whole in pairs if whole.labels.get(key) == text])

    def by_label(self, key):
        """Nanoseconds by what the label says."""
        return self.profile.sums_by_label(key, "wall")


def has_xmllint():
    try:
        return subprocess.run(["xmllint", "--version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
