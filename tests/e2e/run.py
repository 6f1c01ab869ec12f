#!/usr/bin/python3
"""Runs one end-to-end test, or lists them all.

    run.py --list [--engine trace]
    run.py --binary build/stallgraph --workloads build/tests/workloads [--engine trace] sleep_since_before_attach
"""

import argparse
import importlib
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import harness  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--binary")
    parser.add_argument("--workloads")
    parser.add_argument("--engine", default="auto", help="engine for blocked time")
    parser.add_argument("name", nargs="?")
    arguments = parser.parse_args()
    for name in sorted(os.listdir(HERE)):
        if name.startswith("test_") and name.endswith(".py"):
            importlib.import_module(name[:-3])
    if arguments.list:
        for name in harness.TESTS:
            if arguments.engine == "auto" or name in harness.EACH_ENGINE:
                print(name)
        return 0
    if arguments.name not in harness.TESTS:
        print(f"no test {arguments.name}", file=sys.stderr)
        return 2
    return harness.run_test(
        arguments.name, os.path.abspath(arguments.binary), os.path.abspath(arguments.workloads), arguments.engine
    )


if __name__ == "__main__":
    sys.exit(main())
