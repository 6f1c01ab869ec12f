"""stallgraph summary: what it takes, what it refuses, and that a file says what collect said."""

import gzip
import json
import os

from harness import check, test

FOREIGN = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "profiles": [
        {
            "type": "evented",
            "name": "thread 1",
            "unit": "milliseconds",
            "startValue": 0,
            "endValue": 30,
            "events": [
                {"type": "O", "frame": 0, "at": 0},
                {"type": "O", "frame": 1, "at": 10},
                {"type": "C", "frame": 1, "at": 30},
                {"type": "C", "frame": 0, "at": 30},
            ],
        }
    ],
    "shared": {"frames": [{"name": "main"}, {"name": "work"}]},
}


def write(t, name, data):
    path = t.path(name)
    with open(path, "wb") as file:
        file.write(data)
    return path


@test
def summary_of_a_file_is_what_collect_said(t):
    """Plain, gzipped, and from stdin."""
    process = t.workload("mixed_threads")
    result = t.collect("-p", process.pid, duration=1)
    path = f"{result.base}.speedscope.json"
    with open(path, "rb") as file:
        content = file.read()
    packed = write(t, "packed", gzip.compress(content))
    texts = [t.stallgraph("summary", path), t.stallgraph("summary", packed)]
    with open(path, "rb") as stdin:
        texts.append(t.stallgraph("summary", "-", stdin=stdin))
    for text in texts:
        check(text.code == 0 and text.stderr == "", f"{text.code} {text.stderr}")
        check(text.stdout == texts[0].stdout, "not the same summary")
        check(text.stdout.decode() in result.stderr, f"collect said another thing:\n{text.stdout.decode()}")
    said = json.loads(t.stallgraph("summary", "--summary", "json", path).stdout)
    times = [sum(pool["timeNs"][state] for pool in said["pools"]) for state in said["timeNs"]]
    check(times == list(said["timeNs"].values()), f"the pools do not add up to the whole: {said}")
    check(said["threads"] == len(result.profile.threads), f"{said['threads']} threads")


@test
def collect_says_its_summary_in_json(t):
    """On stderr, as text would be, since stdout is for data."""
    process = t.workload("mixed_threads")
    result = t.collect("-p", process.pid, "--summary", "json", duration=0.5)
    check(result.stdout == b"", f"stdout: {result.stdout!r}")
    said = json.loads(result.stderr[result.stderr.index("{") : result.stderr.rindex("}") + 1])
    check(said["threads"] == len(result.profile.threads) and "verdicts" in said, f"{said}")
    silent = t.collect("-p", process.pid, "--summary", "none", duration=0.3)
    check("verdict" not in silent.stderr, silent.stderr)


@test
def summary_takes_profiles_of_other_programs(t):
    """Which say nothing of what threads wait for, and so get no verdict."""
    path = write(t, "foreign.json", json.dumps(FOREIGN).encode())
    text = t.stallgraph("summary", path)
    check(text.code == 0 and b"verdict: none" in text.stdout, f"{text.code} {text.stdout!r}")
    said = json.loads(t.stallgraph("summary", path, "--summary", "json").stdout)
    check(said["threadTimeNs"] == 30_000_000 and said["verdicts"] == [] and said["noVerdictBecause"], f"{said}")


@test
def summary_refuses_what_is_no_profile(t):
    """With one line that says where, and the documented exit code."""
    broken = json.dumps(FOREIGN).encode().replace(b'"frame": 1, "at": 30', b'"frame": 1, "at": 3')
    packed = gzip.compress(json.dumps(FOREIGN).encode())
    cases = [
        ((), 2, "no file"),
        (("--bogus",), 2, "--bogus"),
        (("a", "b"), 2, "only one file"),
        (("--summary", "xml", "a"), 2, "text, json"),
        ((t.path("nothing"),), 1, "No such file"),
        ((t.dir,), 1, "Is a directory"),
        ((write(t, "empty", b""),), 1, "empty"),
        ((write(t, "text", b"hello\n"),), 1, "at byte"),
        ((write(t, "cut", json.dumps(FOREIGN).encode()[:-9]),), 1, "at byte"),
        ((write(t, "cut.gz", packed[:-20]),), 1, "cut.gz"),
        ((write(t, "broken", broken),), 1, "at byte"),
        ((write(t, "object", b"{}"),), 1, "no profile"),
        ((write(t, "deep", b"[" * 100000),), 1, "deeply"),
    ]
    for arguments, code, because in cases:
        result = t.stallgraph("summary", *arguments)
        check(result.code == code and because in result.stderr, f"{arguments}: {result.code} {result.stderr!r}")
        check(result.stderr.startswith("stallgraph: ") and result.stderr.count("\n") == 1, f"{result.stderr!r}")
        check(result.stdout == b"", f"{arguments}: {result.stdout!r}")
    with open("/dev/full", "wb") as full:
        path = write(t, "foreign.json", json.dumps(FOREIGN).encode())
        result = t.stallgraph("summary", path, stdout=full)
        check(result.code == 1 and "stdout" in result.stderr, f"{result.code} {result.stderr!r}")
    check(os.path.exists(path), "the file is gone")
