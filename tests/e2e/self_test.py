#!/usr/bin/python3
"""The end-to-end tests' own tools, on hand-made data: what is whole is read, and each kind of fault is found."""

import copy
import json
import os
import sys

sys.dont_write_bytecode = True

import formats  # noqa: E402
import harness  # noqa: E402

GOOD = {
    "$schema": formats.SCHEMA,
    "activeProfileIndex": 0,
    "stallgraph": {
        "startUnixSeconds": 100,
        "startUnixNanoseconds": 5,
        "durationNs": 1000,
        "loss": {"lostEvents": 0, "unwoundStacks": 2, "truncatedStacks": 0, "unpermittedNs": 0},
        "states": ["on-cpu", "runnable", "blocked", "idle", "stopped", "unknown"],
        "threads": [{"tid": 7, "name": "w", "lifetimeNs": 900, "timeNs": [300, 0, 600, 0, 0, 0]}],
    },
    "shared": {"frames": [{"name": "main"}, {"name": "work"}, {"name": "[wait: poll]", "kind": "wait"}]},
    "profiles": [
        {
            "type": "sampled",
            "name": "All threads",
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": 900,
            "samples": [[0, 1], [0, 2]],
            "weights": [300, 600],
            "stallgraph": {"thread": -1, "states": [0, 2]},
        },
        {
            "type": "sampled",
            "name": "p/w (tid 7)",
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": 1000,
            "samples": [[], [0, 1], [0, 2]],
            "weights": [100, 300, 600],
            "stallgraph": {"thread": 0, "states": [-1, 0, 2]},
        },
    ],
}


def changed(change):
    data = copy.deepcopy(GOOD)
    change(data)
    return data


def set_at(*path, value):
    def change(data):
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return change


BAD_SPEEDSCOPE = {
    "no schema": set_at("$schema", value=""),
    "a frame without a name": set_at("shared", "frames", 1, value={}),
    "no profiles": set_at("profiles", value=[]),
    "active profile out of range": set_at("activeProfileIndex", value=2),
    "a negative weight": set_at("profiles", 1, "weights", value=[100, -300, 1200]),
    "a broken weight": set_at("profiles", 1, "weights", value=[100, 300.5, 599.5]),
    "weights that do not add up": set_at("profiles", 1, "endValue", value=1001),
    "samples without weights": set_at("profiles", 1, "weights", value=[100, 900]),
    "an index out of range": set_at("profiles", 1, "samples", value=[[], [0, 3], [0, 2]]),
    "a unit that is no time": set_at("profiles", 1, "unit", value="bytes"),
    "a state that the stack belies": set_at("profiles", 1, "stallgraph", "states", value=[-1, 2, 2]),
    "a gap with a state": set_at("profiles", 1, "stallgraph", "states", value=[0, 0, 2]),
    "a thread without a profile": lambda data: data["stallgraph"]["threads"].append({"tid": 8}),
}
BAD_FOLDED = {
    "no count": b"p;main\n",
    "a count that is no number": b"p;main 1.5\n",
    "an unterminated line": b"p;main 1",
    "an empty frame": b"p;;main 1\n",
    "lines out of order": b"p;z 1\np;a 1\n",
    "a stack twice": b"p;a 1\np;a 2\n",
    "a control byte": b"p;a\x1b 1\n",
    "bad UTF-8": b"p;a\xff 1\n",
}
SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" data-total-us="1000"><svg class="frames">'
    b'<g><title>all</title><rect x="0%%" width="100%%" y="0"/></g>'
    b'<g><title>main\nin x</title><rect x="0%%" width="75%%" y="18"/></g>'
    b'<g><title>work</title><rect x="%d%%" width="25%%" y="36"/></g></svg></svg>'
)


BAD_PPROF = {
    "a value that its state belies": (b"\x80\xaf\xd0\xe5\x02", b"\x81\xaf\xd0\xe5\x02"),
    "no such location": (b"\x0a\x02\x01\x02", b"\x0a\x02\x01\x63"),
    "bad UTF-8 in pprof": (b"parent_fn", b"parent_f\xff"),
    "a control byte in pprof": (b"parent_fn", b"parent\x1bfn"),
    "a field that there is not": (b"\x50\x80", b"\x60\x80"),
}


def golden(name):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", name), "rb") as file:
        return file.read()


def check_raises(what, read):
    try:
        read()
    except (AssertionError, ValueError, KeyError, IndexError, SyntaxError) as error:
        print(f"found: {what}: {str(error)[:90]}")
        return
    raise SystemExit(f"NOT found: {what}")


def main():
    profile = formats.Speedscope(GOOD)
    thread = profile.thread(7)
    assert json.loads(json.dumps(GOOD)) == GOOD
    assert thread.state("blocked").time() == 600 and thread.state("gap").time() == 100
    assert thread.having("main", "work").time() == 300 and not thread.having("work", "main").samples
    assert thread.runs()[2] == (400, 600, ("main", "[wait: poll]"))
    assert profile.threads_total_ns() == 900 and profile.offset_of(100_000_000_105) == 100
    assert formats.adjacent(("a", "b", "c"), ("b", "c")) and not formats.adjacent(("a", "b", "c"), ("a", "c"))
    for what, change in BAD_SPEEDSCOPE.items():
        check_raises(what, lambda change=change: formats.Speedscope(changed(change)))
    check_raises("an unknown thread", lambda: profile.thread(8))

    folded = formats.Folded.parse(b"p;main 2\np;main;work 3\n")
    assert folded.time() == 5000 and folded.having("work").time() == 3000
    for what, data in BAD_FOLDED.items():
        check_raises(what, lambda data=data: formats.Folded.parse(data))

    pprof = formats.Pprof(golden("quarter.pb"))
    assert pprof.sums() == {("main", "parent_fn"): 750_000_000, ("main", "parent_fn", "child_fn"): 250_000_000}
    assert pprof.labelled("tid", "77").time() == pprof.time() and pprof.labelled("tid", "78").samples == []
    for what, (good, bad) in BAD_PPROF.items():
        check_raises(what, lambda good=good, bad=bad: formats.Pprof(golden("quarter.pb").replace(good, bad, 1)))

    svg = formats.Svg(SVG % 10)
    assert [frame.label() for frame in svg.frames] == ["all", "main", "work"]
    assert svg.stacks().sums() == {("all",): 250_000, ("all", "main"): 500_000, ("all", "main", "work"): 250_000}
    check_raises("a child outside of its parent", lambda: formats.Svg(SVG % 60).stacks())
    check_raises("ill-formed XML", lambda: formats.Svg(SVG % 10 + b"<"))

    counters = harness.Counters([])
    counters.stop()
    counters.history[7] = [(1_000_000_000, 0, 0), (2_000_000_000, 1000, 100), (3_000_000_000, 1000, 100)]
    assert counters.between(7, 1_500_000_000, 2_500_000_000) == (500, 50)
    assert counters.between(7, 500_000_000, 9_000_000_000) == (1000, 100)
    assert counters.between(8, 0, 1) == (0, 0)
    for what, call in {
        "a difference": lambda: harness.check_close("x", 1.2, 1.0, relative=0.1),
        "a low share": lambda: harness.check_share("x", 1, 2, at_least=0.6),
        "a share of nothing": lambda: harness.check_share("x", 0, 0, at_least=0.0),
    }.items():
        try:
            call()
        except harness.Failure:
            continue
        raise SystemExit(f"NOT found: {what}")


if __name__ == "__main__":
    main()
