#!/usr/bin/python3
"""Reads the golden files back, with parsers of its own, and holds the formats against their rules and against each other.

check_golden.py               all profiles of this folder
check_golden.py PREFIX...     PREFIX.speedscope.json, .folded, .svg and .pb or .pb.gz of any other profile
check_golden.py --self-test   files with a fault in them must be refused
"""

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import read_pprof

HERE = os.path.dirname(os.path.abspath(__file__))
PROFILES = ["hostile", "server", "quarter", "empty"]
MAX_EXACT = 2**53
SVG = "{http://www.w3.org/2000/svg}"
TINY = 1e-5  # percent: positions have six decimals


class Fault(Exception):
    pass


def require(condition, text):
    if not condition:
        raise Fault(text)


def unique_keys(pairs):
    require(len({key for key, _ in pairs}) == len(pairs), "a key twice in one object")
    return dict(pairs)


def numbers_in(value):
    if isinstance(value, dict):
        for item in value.values():
            yield from numbers_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers_in(item)
    elif isinstance(value, (int, float)):
        yield value


def check_sampled(profile, frame_count):
    """One profile of a speedscope file; returns its samples as (frames, weight, state)."""
    samples, weights = profile["samples"], profile["weights"]
    states = profile["stallgraph"]["states"]
    name = profile["name"]
    require(profile["type"] == "sampled", f"{name}: type")
    require(profile["unit"] in ("nanoseconds", "microseconds"), f"{name}: unit {profile['unit']}")
    require(profile["startValue"] == 0, f"{name}: startValue")
    require(len(samples) == len(weights) == len(states), f"{name}: counts differ")
    require(all(weight > 0 for weight in weights), f"{name}: a weight that is not positive")
    require(all(0 <= i < frame_count for sample in samples for i in sample), f"{name}: a frame index out of range")
    require(profile["endValue"] - profile["startValue"] == sum(weights), f"{name}: endValue is not the sum of weights")
    rows = list(zip(map(tuple, samples), weights, states))
    for row, after in zip(rows, rows[1:]):
        require((row[0], row[2]) != (after[0], after[2]), f"{name}: adjacent equal samples")
    for frames, _, state in rows:
        require((frames == ()) == (state == -1), f"{name}: an empty sample that is no gap, or a gap with frames")
    return rows


def read_speedscope(data):
    text = data.decode("utf-8")
    file = json.loads(text, object_pairs_hook=unique_keys)
    require(not re.search("[\x00-\x09\x0b-\x1f]", text), "raw control characters")
    require(file["$schema"] == "https://www.speedscope.app/file-format-schema.json", "$schema")
    require(all(abs(number) <= MAX_EXACT for number in numbers_in(file)), "a number beyond 2^53")
    require(file["activeProfileIndex"] == 0, "activeProfileIndex")
    frames = file["shared"]["frames"]
    require(all(isinstance(frame.get("name"), str) and frame["name"] for frame in frames), "a frame without a name")
    require(all("key" not in frame for frame in frames), "a frame with the viewer's own key 'key'")
    real = [json.dumps(frame, sort_keys=True) for frame in frames]
    require(len(set(real)) == len(real), "a frame twice")

    own, profiles = file["stallgraph"], file["profiles"]
    require(len(profiles) == 1 + len(own["threads"]), "one profile a thread, and one for all")
    rows = [check_sampled(profile, len(frames)) for profile in profiles]
    require(profiles[0]["name"] == "All threads", "the first profile's name")
    require(len({(p["startValue"], p["endValue"]) for p in profiles[1:]}) <= 1, "threads' profiles of different lengths")
    require(len({(frames_, state) for frames_, _, state in rows[0]}) == len(rows[0]), "All threads: a stack twice")
    require(all(state != -1 for _, _, state in rows[0]), "All threads: a gap")

    # Profile 0 is the sum of the threads', but for the first frame "[idle]".
    idle_mark = next(i for i, frame in enumerate(frames) if frame["name"] == "[idle]" and frame.get("kind") == "mark")
    summed, all_threads = {}, {}
    for thread_rows in rows[1:]:
        for stack, weight, state in thread_rows:
            if state != -1:
                summed[stack, state] = summed.get((stack, state), 0) + weight
    for stack, weight, state in rows[0]:
        if stack[0] == idle_mark:
            require(own["states"][state] == "idle", "a stack below [idle] that is not")
            stack = stack[1:]
        all_threads[stack, state] = weight
    require(summed == all_threads, "All threads is not the sum of the threads")

    for index, thread in enumerate(own["threads"]):
        times = [0] * len(own["states"])
        for _, weight, state in rows[1 + index]:
            if state != -1:
                times[state] += weight
        require(profiles[1 + index]["stallgraph"]["thread"] == index, "a profile's thread")
        require(times == thread["timeNs"], f"{profiles[1 + index]['name']}: ledger {thread['timeNs']}, samples {times}")
        position = 0
        for stack, weight, state in rows[1 + index]:
            if state != -1:
                require(thread["beginNs"] <= position and position + weight <= thread["endNs"],
                        f"{profiles[1 + index]['name']}: a sample outside its life")
            position += weight
    names = [frame["name"] for frame in frames]
    stacks = [(tuple(names[i] for i in stack), weight) for stack, weight, _ in rows[0]]
    return {"total_us": (sum(weight for _, weight in stacks) + 500) // 1000, "stacks": stacks, "frames": frames, "own": own,
            "depth": max((len([n for n in stack if n != "[idle]"]) for stack, _ in stacks), default=0)}


def read_folded(data):
    text = data.decode("utf-8")
    require(text == "" or text.endswith("\n"), "no line break at the end")
    lines = text.split("\n")[:-1]
    require(lines == text.splitlines(), "a line break inside a name")
    require(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), "control characters")
    stacks = []
    for line in lines:
        match = re.fullmatch(r"(.+) ([0-9]+)", line)
        require(match is not None, f"not a folded line: {line!r}")
        stack = tuple(match.group(1).split(";"))
        require(all(stack), f"an empty frame: {line!r}")
        require(int(match.group(2)) > 0, f"a count of 0: {line!r}")
        stacks.append((stack, int(match.group(2))))
    paths = [line.rpartition(" ")[0].encode() for line in lines]
    require(paths == sorted(set(paths)), "lines are not sorted, or one is there twice")
    return {"total_us": sum(count for _, count in stacks), "stacks": stacks,
            "depth": max((len(stack) - (3 if stack[0] == "[idle]" else 2) for stack, _ in stacks), default=0)}


def read_svg_tree(root):
    """The call tree that the script draws: time by path of names, as folded text has it."""
    parts = [part for part in root.iter(SVG + "script") if part.get("class") == "data"]
    tree = {key: value for part in parts for key, value in json.loads(part.text).items()}
    names = [tree["strings"][i].replace(";", ":") for i in tree["frames"][0::3]]
    require(set(tree["frames"][2::3]) <= {0, 1, 2, 3, 4}, "a kind of frame that there is not")
    paths, path = [], []
    for value in tree["nodes"]:
        if value < 0:
            require(-value <= len(path), "up beyond the root")
            del path[value:]
            continue
        path.append(names[value])
        paths.append(tuple(path[1:]))
    stacks, node = collections.Counter(), 0
    for step, reason, self_us in zip(*[iter(tree["selves"])] * 3):
        node += step
        require(self_us > 0 and 0 <= reason < len(tree["reasons"]), "an entry without time, or of no reason")
        stacks[paths[node]] += self_us
    require(sum(stacks.values()) == tree["totalUs"], "own times do not add up to the total")
    return stacks


def read_svg(data):
    text = data.decode("utf-8")
    root = ET.fromstring(text)
    require(not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), "control characters")
    stacks = read_svg_tree(root)
    require(sum(1 for _ in root.iter(SVG + "script")) == 4, "another number of scripts")
    require(root.tag == SVG + "svg" and root.get("role") == "img" and root.get("aria-label"), "root, role or label")
    require(sum(1 for _ in root.iter()) < 10000, "10,000 elements or more")
    total = int(root.get("data-total-us"))
    rects = []
    for area in root.iter(SVG + "svg"):
        if area.get("class") != "frames":
            continue
        for group in area.findall(SVG + "g"):
            rect, label = group.find(SVG + "rect"), group.find(SVG + "text")
            x, width = (float(rect.get(key).removesuffix("%")) for key in ("x", "width"))
            row = int(rect.get("y")) // int(rect.get("height"))
            shown = "" if label is None else label.text
            rects.append((row, x, x + width, group.find(SVG + "title").text.split("\n")[0]))
            # 7.3 px a character of 12 px; 1172 px are 100 %.
            require(len(shown) * 7.3 <= width * 11.72, f"text wider than its rectangle: {shown!r}")
    require((total == 0) == (not rects), "a total without frames, or frames without a total")
    for row, left, right, name in rects:
        require(0 <= left < right <= 100 + TINY, f"{name!r}: outside the picture")
        parents = [r for r in rects if r[0] == row - 1 and r[1] - TINY <= left and right <= r[2] + TINY]
        require(row == 0 or len(parents) == 1, f"{name!r}: lies within {len(parents)} frames above it")
        beside = [r for r in rects if r[0] == row and r[1] < right - TINY and left < r[2] - TINY]
        require(len(beside) == 1, f"{name!r}: overlaps")
    idle = any(row == 1 and name == "[idle]" for row, _, _, name in rects)
    widest = {}
    for row, left, right, name in rects:
        under_idle = idle and any(r[0] == 1 and r[3] == "[idle]" and r[1] - TINY <= left and right <= r[2] + TINY
                                  for r in rects)
        widest[row - (4 if under_idle else 3)] = True
    require(sum(stacks.values()) == total, "the tree's total is not the picture's")
    return {"total_us": total, "rects": rects, "stacks": stacks, "depth": max(widest, default=-1) + 1}


STATE_TYPES = ("on-cpu", "runnable", "blocked", "idle")
PPROF_TYPES = [("samples", "count")] + [(name, "nanoseconds") for name in (*STATE_TYPES, "wall")]


def read_pprof_file(data):
    """pprof, with its stacks as folded text has them: under process and pool."""
    profile = read_pprof.Profile(data)
    require(profile.types == PPROF_TYPES and profile.default_type == "wall", f"types {profile.types}")
    stacks, depth = collections.Counter(), 0
    for sample in profile.samples:
        state, values = sample.labels["state"], sample.values
        wanted = {name: values["wall"] if name == state else 0 for name in STATE_TYPES}
        require(values["wall"] > 0 and values["samples"] > 0, f"a sample of nothing: {values}")
        require(wanted == {name: values[name] for name in STATE_TYPES}, f"{state}, but {values}")
        require((state == "idle") == (sample.stack[0] == "[idle]"), f"{state}, but {sample.stack}")
        names = sample.stack[1:] if state == "idle" else sample.stack
        depth = max(depth, len(names))
        folded = (*(("[idle]",) if state == "idle" else ()), sample.labels["process"], sample.labels["thread"], *names)
        stacks[tuple(name.replace(";", ":") for name in folded)] += values["wall"]
    return {"total_us": (profile.total("wall") + 500) // 1000, "stacks": stacks, "depth": depth, "profile": profile}


def check_pprof(pprof, speedscope, folded):
    """Stack by stack as in folded text, state by state as in the ledgers."""
    profile, own = pprof["profile"], speedscope["own"]
    lines = dict(folded["stacks"])
    require(set(lines) <= set(pprof["stacks"]), f"pprof lacks {set(lines) - set(pprof['stacks'])}")
    for stack, ns in pprof["stacks"].items():
        require(abs(ns - lines.get(stack, 0) * 1000) < 1000, f"{stack}: {ns} ns, folded {lines.get(stack, 0)} us")
    ledgers = {str(thread["tid"]): sum(thread["timeNs"]) for thread in own["threads"] if sum(thread["timeNs"]) > 0}
    require(profile.sums_by_label("tid", "wall") == ledgers, "pprof: the threads' ledgers")
    for index, state in enumerate(own["states"]):
        ns = sum(thread["timeNs"][index] for thread in own["threads"])
        require(profile.sums_by_label("state", "wall").get(state, 0) == ns, f"pprof: time {state}")
    require(profile.duration_ns == own["durationNs"], "pprof: duration")
    require(profile.time_ns == own["startUnixSeconds"] * 10**9 + own["startUnixNanoseconds"], "pprof: start")
    require(profile.period == int(1e9 / own["frequencyHz"]), "pprof: period")
    modules = {(frame["file"], frame.get("buildId", "")) for frame in speedscope["frames"] if "file" in frame}
    seen = {module for sample in profile.samples for module in sample.modules if module}
    require(seen == modules, f"pprof: mappings {seen}, modules {modules}")


def read_either(*paths):
    for path in paths:
        if os.path.exists(path):
            with open(path, "rb") as file:
                return file.read()
    raise Fault(f"none of {paths}")


def check_profile(prefix):
    with open(prefix + ".speedscope.json", "rb") as file:
        speedscope = read_speedscope(file.read())
    with open(prefix + ".folded", "rb") as file:
        folded = read_folded(file.read())
    with open(prefix + ".svg", "rb") as file:
        svg = read_svg(file.read())
    pprof = read_pprof_file(read_either(prefix + ".pb", prefix + ".pb.gz"))
    check_pprof(pprof, speedscope, folded)
    if shutil.which("xmllint"):
        subprocess.run(["xmllint", "--noout", prefix + ".svg"], check=True)
    totals = [part["total_us"] for part in (speedscope, folded, svg, pprof)]
    depths = [part["depth"] for part in (speedscope, folded, svg, pprof)]
    require(dict(folded["stacks"]) == dict(svg["stacks"]), "the stacks of folded and svg differ")
    require(len(set(totals)) == 1, f"totals differ: {totals}")
    require(len(set(depths)) == 1, f"depths differ: {depths}")
    return speedscope, folded, svg, pprof


def check_hostile(speedscope, folded, svg, pprof):
    """The fixture's truth: how deep the hostile names stand, and that none of them got lost."""
    names = {frame["name"] for frame in speedscope["frames"]}
    require('a;b<c>"&\n\ufffd d' in names, "the hostile symbol in speedscope")
    require("<" * 300 in names, "the symbol of 300 '<' in speedscope")
    require("esc\x1b[31m\x7f\x85" in names, "the symbol with ESC in speedscope")
    long_name = [name for name in names if name.startswith("begin")]
    require(len(long_name) == 1 and len(long_name[0]) == 1000 and long_name[0].endswith("end"), "the long symbol")
    require("\u2026" in long_name[0], "the long symbol's mark")
    at = {stack.index('a:b<c>"& \ufffd d') for stack, _ in folded["stacks"] if 'a:b<c>"& \ufffd d' in stack}
    require(at == {4}, f"the hostile symbol stands at {at} in folded")
    at = {row for row, _, _, name in svg["rects"] if name == 'a;b<c>"& \ufffd d'}
    require(at == {5}, f"the hostile symbol stands in rows {at} of the svg")
    at = {stack.index('a:b<c>"& \ufffd d') for stack in pprof["stacks"] if 'a:b<c>"& \ufffd d' in stack}
    require(at == {4}, f"the hostile symbol stands at {at} in pprof")
    strings = "".join(pprof["profile"].strings)
    require(not re.search("[\x00-\x1f\x7f-\x9f]", strings), "control characters in pprof")
    require(speedscope["depth"] == 5, f"depth {speedscope['depth']}")


def check_quarter(svg):
    by_name = {name: (left, right) for _, left, right, name in svg["rects"]}
    child, parent = by_name["child_fn"], by_name["parent_fn"]
    require(abs(child[1] - child[0] - 25) <= 0.001, f"child_fn is {child} wide, not a quarter")
    require(abs(parent[1] - parent[0] - 100) <= 0.001, "parent_fn is not all")
    require(child[0] >= parent[0] and child[1] <= parent[1], "child_fn leaves parent_fn")


def check_all():
    parts = {name: check_profile(os.path.join(HERE, name)) for name in PROFILES}
    check_hostile(*parts["hostile"])
    check_quarter(parts["quarter"][2])
    require(parts["empty"][0]["total_us"] == 0, "the empty profile is not")
    require(parts["server"][0]["total_us"] > 0, "the server's profile is empty")


def self_test():
    """Each fault that a reader is there to find, put into a good file."""
    def golden(name):
        with open(os.path.join(HERE, name), "rb") as file:
            return file.read()

    faults = [
        (read_speedscope, "hostile.speedscope.json", b'"weights":[2650000000,', b'"weights":[2650000001,'),
        (read_speedscope, "hostile.speedscope.json", b'"weights":[2650000000,', b'"weights":[2650000000,0,'),
        (read_speedscope, "hostile.speedscope.json", b'"name":"mid_fn",', b""),
        (read_speedscope, "hostile.speedscope.json", b"\n[0,1,2,9]", b"\n[0,1,2,99]"),
        (read_speedscope, "hostile.speedscope.json", b"\\u001b", b"\x1b"),
        (read_speedscope, "hostile.speedscope.json", b'"lostEvents":12', b'"lostEvents":9007199254740993'),
        (read_speedscope, "hostile.speedscope.json", b'"endValue":6650150000', b'"endValue":6650150001'),
        (read_folded, "server.folded", b" 980000\n", b" \n"),
        (read_folded, "server.folded", b" 980000\n", b" 0\n"),
        (read_folded, "server.folded", b"dbserver;housekeeper", b"zbserver;housekeeper"),
        (read_folded, "server.folded", b"housekeeper;", b"housekeeper;;"),
        (read_folded, "server.folded", b"housekeeper;", b"house\xc2\x85keeper;"),
        (read_svg, "quarter.svg", b'<rect x="0%" width="25%"', b'<rect x="80%" width="25%"'),
        (read_svg, "hostile.svg", b"&lt;&lt;", b"<&lt;"),
        (read_svg, "quarter.svg", b"{\"selves\":[", b"{\"selves\":[0,0,5,"),
        (read_svg, "quarter.svg", b"{\"nodes\":[", b"{\"nodes\":[-7,"),
        (read_pprof_file, "quarter.pb", b"\x80\xaf\xd0\xe5\x02", b"\x81\xaf\xd0\xe5\x02"),
        (read_pprof_file, "quarter.pb", b"\x0a\x02\x01\x02", b"\x0a\x02\x01\x63"),
        (read_pprof_file, "quarter.pb", b"\x0a\x02\x01\x02", b"\x0a\x03\x01\x02"),
        (read_pprof_file, "quarter.pb", b"parent_fn", b"parent_f\xff"),
        (read_pprof_file, "quarter.pb", b"\x32\x04wall", b"\x32\x04idle"),
        (read_pprof_file, "quarter.pb", b"\x32\x00", b"\x32\x01x"),
        (read_pprof_file, "quarter.pb", b"\x22\x08\x08\x02", b"\x22\x08\x08\x01"),
        (read_svg, "server.svg", b">PQexec</text>", b">" + b"PQexec" * 60 + b"</text>"),
    ]
    for reader, name, good, bad in faults:
        data = golden(name)
        reader(data)
        require(good in data, f"{name} no longer contains {good!r}")
        try:
            reader(data.replace(good, bad, 1))
        except (Fault, read_pprof.Fault, ValueError, ET.ParseError, KeyError):
            continue
        raise Fault(f"{name}: {bad!r} was not noticed")


def main(arguments):
    try:
        if arguments == ["--self-test"]:
            self_test()
        elif arguments:
            for prefix in arguments:
                check_profile(prefix)
        else:
            check_all()
    except (Fault, read_pprof.Fault, ET.ParseError, subprocess.CalledProcessError) as fault:
        print(f"check_golden.py: {fault}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
