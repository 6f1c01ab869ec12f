#!/usr/bin/python3
"""Holds the includes against the layers, and finds cycles between modules.

    base <- model <- {collect, unwind, symbolize, wait, runtime} <- session <- cli
    base <- model <- exporters <- cli

A module is x.c with x.h, and x_internal.h where its parts share one. Prints one line for each fault; exit code 1 when there is one.
"""

import os
import re
import sys
import tempfile

SIBLINGS = ("collect", "unwind", "symbolize", "wait", "runtime")
MAY_USE = {
    "base": set(),
    "model": {"base"},
    "exporters": {"base", "model"},
    "session": {"base", "model", *SIBLINGS},
    "cli": {"base", "model", *SIBLINGS, "session", "exporters"},
    "bpf": set(),  # programs for the kernel: their own header alone
    **{name: {"base", "model"} for name in SIBLINGS},
    "collect": {"base", "model", "bpf"},
}
GENERATED = re.compile(r"\.(skel\.h|inc)$")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


def layer_of(path):
    """The layer of a file of profiler/ or exporters/, or None."""
    parts = path.split("/")
    if parts[0] == "exporters":
        return "exporters"
    if parts[0] != "profiler":
        return None
    if len(parts) == 2:
        return "session"
    if parts[1:3] == ["collect", "bpf"]:
        return "bpf"
    return parts[1]


def module_of(path):
    return re.sub(r"(_internal)?\.[ch]$", "", path)


def source_files(root):
    for top in ("profiler", "exporters", "examples", "tests/workloads"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def includes_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return INCLUDE.findall(file.read())


def check_include(root, path, included):
    """What is wrong with an include, or None."""
    layer, used = layer_of(path), layer_of(included)
    if layer is None:
        return None if used is None else "examples and workloads do not use the profiler's code"
    if GENERATED.search(included):
        return None
    if layer not in MAY_USE:
        return f"there is no layer {layer}"
    if used is None or not os.path.isfile(os.path.join(root, included)):
        return "not a file of profiler/ or exporters/, written from the root"
    if used != layer and used not in MAY_USE[layer]:
        return f"{layer} does not use {used}"
    return None


def find_cycle(edges):
    """One cycle in {module: set of modules} as a list whose last is its first, or None. Kahn's algorithm leaves the cycles over."""
    left = {module: set(used) for module, used in edges.items()}
    while True:
        done = [module for module, used in left.items() if not used & left.keys()]
        if not done:
            break
        for module in done:
            del left[module]
    if not left:
        return None
    walk = [min(left)]
    while walk[-1] not in walk[:-1]:
        walk.append(min(left[walk[-1]] & left.keys()))
    return walk[walk.index(walk[-1]) :]


def check(root):
    faults, edges = [], {}
    for path in sorted(source_files(root)):
        for included in includes_of(root, path):
            fault = check_include(root, path, included)
            if fault:
                faults.append(f'{path}: #include "{included}": {fault}')
            module, used = module_of(path), module_of(included)
            if layer_of(path) and module != used:
                edges.setdefault(module, set()).add(used)
    cycle = find_cycle(edges)
    if cycle:
        faults.append("modules in a cycle: " + " -> ".join(cycle))
    return faults


def plant(root, files):
    for path, text in files.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


def self_test():
    """Each tree here has one fault, which must be found, or none."""
    base = {"profiler/base/a.h": "", "profiler/base/b.h": "", "profiler/model/m.h": "", "profiler/unwind/u.h": ""}
    cases = [
        ({"profiler/collect/c.c": '#include "profiler/model/m.h"\n#include <stdio.h>\n#include "x.skel.h"\n'}, None),
        ({"profiler/base/a.c": '#include "profiler/model/m.h"\n'}, "base does not use model"),
        ({"profiler/collect/c.c": '#include "profiler/unwind/u.h"\n'}, "collect does not use unwind"),
        ({"exporters/e.c": '  #  include "profiler/unwind/u.h"\n'}, "exporters does not use unwind"),
        ({"profiler/session.c": '#include "profiler/unwind/u.h"\n'}, None),
        ({"profiler/cli/main.c": '#include "profiler/unwind/u.h"\n'}, None),
        ({"profiler/unwind/u.c": '#include "profiler/cli/x.h"\n', "profiler/cli/x.h": ""}, "unwind does not use cli"),
        ({"profiler/collect/bpf/t.bpf.c": '#include "profiler/base/a.h"\n'}, "bpf does not use base"),
        ({"profiler/unwind/u.c": '#include "u.h"\n'}, "written from the root"),
        ({"profiler/extra/x.c": '#include "profiler/base/a.h"\n'}, "there is no layer extra"),
        ({"examples/s/main.c": '#include "profiler/base/a.h"\n'}, "do not use the profiler"),
        (
            {"profiler/base/a.c": '#include "profiler/base/b.h"\n', "profiler/base/b.c": '#include "profiler/base/a.h"\n'},
            "modules in a cycle: profiler/base/a -> profiler/base/b -> profiler/base/a",
        ),
        ({"profiler/base/a.c": '#include "profiler/base/a_internal.h"\n', "profiler/base/a_internal.h": ""}, None),
    ]
    failures = 0
    for files, wanted in cases:
        with tempfile.TemporaryDirectory() as root:
            plant(root, {**base, **files})
            faults = check(root)
        right = not faults if wanted is None else len(faults) == 1 and wanted in faults[0]
        failures += not right
        print(f"{'ok' if right else 'NOT OK'}: {files} -> {faults}")
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 1 if self_test() else 0
    faults = check(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    print("\n".join(faults) if faults else "no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
