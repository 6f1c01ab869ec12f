#!/usr/bin/python3
"""`go tool pprof` on the golden files: what it makes of them is held against the ledgers and stacks that the speedscope files
of the same profiles have. Skipped (77) where go is not installed."""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
STATES = ("on-cpu", "runnable", "blocked", "idle")


def require(condition, text):
    if not condition:
        raise SystemExit(f"check_go_pprof.py: {text}")


def pprof(name, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        # PPROF_TMPDIR: it keeps copies. No proxy, no home: it looks for nothing but the file.
        environment = {**os.environ, "HOME": folder, "PPROF_TMPDIR": folder, "PPROF_BINARY_PATH": folder, "TZ": "UTC"}
        argv = ["go", "tool", "pprof", *arguments, os.path.join(HERE, f"{name}.pb")]
        done = subprocess.run(argv, capture_output=True, check=False, env=environment, cwd=folder)
    require(done.returncode == 0, f"{argv}: {done.stderr.decode()}")
    require(b"symboliz" not in done.stderr.lower(), f"it looked for symbols: {done.stderr.decode()}")
    return done.stdout.decode("utf-8")


class Truth:
    """Of the speedscope file: nanoseconds by name (own, and with callees), state, wait and thread."""

    def __init__(self, name):
        with open(os.path.join(HERE, f"{name}.speedscope.json"), encoding="utf-8") as file:
            data = json.load(file)
        own, frames, everything = data["stallgraph"], data["shared"]["frames"], data["profiles"][0]
        self.by_tid = {str(thread["tid"]): sum(thread["timeNs"]) for thread in own["threads"] if sum(thread["timeNs"])}
        self.by_state = collections.Counter()
        for thread in own["threads"]:
            self.by_state.update(dict(zip(own["states"], thread["timeNs"])))
        self.flat, self.cumulative, self.by_wait = (collections.Counter() for _ in range(3))
        self.stacks = collections.Counter()
        for stack, ns in zip(everything["samples"], everything["weights"]):
            names = tuple(safe(frames[i]["name"]) for i in stack)
            self.flat[names[-1]] += ns
            self.stacks[names] += ns
            for name in set(names):
                self.cumulative[name] += ns
            if "wait" in frames[stack[-1]]:
                self.by_wait[frames[stack[-1]]["wait"]] += ns


def safe(name):
    """As a terminal may see it; speedscope's names are kept as they are."""
    return re.sub("[\x00-\x1f\x7f-\x9f\ufffe\uffff]", "\ufffd", re.sub("[\t\n\r\u2028\u2029]", " ", name))


def rows_below(text, heading):
    return text[text.index(heading) :].splitlines()[1:]


def to_ns(text):
    require(re.fullmatch(r"[0-9.]+(ns)?", text), f"no nanoseconds: {text!r}")
    return round(float(text.removesuffix("ns")))


def check_top(name, truth):
    text = pprof(name, "-top", "-unit=ns", "-nodefraction=0", "-nodecount=100000", "-sample_index=wall")
    flat, cumulative = collections.Counter(), collections.Counter()
    for row in rows_below(text, "      flat  flat%"):
        own, _, _, total, _, function = row.split(None, 5)
        flat[function] += to_ns(own)
        cumulative[function] += to_ns(total)
    require(+flat == truth.flat, f"{name}: -top, flat: {flat - truth.flat} and {truth.flat - flat}")
    require(cumulative == truth.cumulative, f"{name}: -top, cum: {cumulative - truth.cumulative}")


def check_each_state(name, truth):
    """Each state's column by itself."""
    for state in STATES:
        text = pprof(name, "-top", "-unit=ns", f"-sample_index={state}")
        total = re.search(r"of (\S+) total", text) or re.search(r"Total samples = (\S+)", text)
        seen = to_ns(total.group(1)) if total else 0
        require(seen == truth.by_state[state], f"{name}: {state} is {seen} ns, the ledger has {truth.by_state[state]}")


def check_tags(name, truth):
    text, tags, key = pprof(name, "-tags", "-unit=ns", "-sample_index=wall"), {}, None
    for row in text.splitlines():
        heading = re.fullmatch(r" *(\S+): Total .*", row)
        entry = re.fullmatch(r" *(\S+) \([ 0-9.]+%\): (.*)", row)
        if heading:
            key = tags.setdefault(heading.group(1), {})
        elif entry:
            key[entry.group(2)] = to_ns(entry.group(1))
    require(tags["tid"] == truth.by_tid, f"{name}: -tags, tid: {tags['tid']}, ledger {truth.by_tid}")
    require(tags["state"] == +truth.by_state, f"{name}: -tags, state: {tags['state']}, ledger {truth.by_state}")
    require(tags.get("wait", {}) == truth.by_wait, f"{name}: -tags, wait: {tags.get('wait')}, {truth.by_wait}")
    require({"process", "pid", "thread"} <= set(tags), f"{name}: tags {set(tags)}")


def check_traces(name, truth):
    text, stacks = pprof(name, "-traces", "-unit=ns", "-sample_index=wall"), collections.Counter()
    for part in re.split(r"(?m)^-+\+-+\n", text)[1:]:
        lines = [line for line in part.splitlines() if line and not re.match(r" *(pid|tid|process|thread|state|wait):  ", line)]
        if lines:
            value, leaf = lines[0].split(None, 1)
            stacks[tuple(reversed([leaf.strip(), *(line.strip() for line in lines[1:])]))] += to_ns(value)
    require(stacks == truth.stacks, f"{name}: -traces: {stacks - truth.stacks} and {truth.stacks - stacks}")


def main():
    if shutil.which("go") is None:
        print("skipped: go is not installed (Debian: golang-go)")
        return 77
    for name in ("server", "quarter", "hostile"):
        truth = Truth(name)
        for check in (check_top, check_each_state, check_tags, check_traces):
            check(name, truth)
    comments = pprof("server", "-comments")
    require("engines: on-CPU: cpu-clock" in comments and "host: db-host" in comments, f"comments: {comments}")
    require("empty" not in pprof("empty", "-raw").lower(), "the profile without samples")
    return 0


if __name__ == "__main__":
    sys.exit(main())
