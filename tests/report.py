#!/usr/bin/python3
"""Counts what ctest wrote as JUnit XML and names each skip with its reason.

    report.py build/release/ctest.xml tests/expected_skips.txt

Exit code 1 when something was skipped that the list does not allow, 2 when the file is none or holds no test.
"""

import re
import sys
import xml.etree.ElementTree

SKIPPED_CASE = re.compile(r"\[  SKIPPED \] (?!\d+ test)(.+)")


def read_allowed(path):
    """One name a line; behind '#' the reason."""
    with open(path, encoding="utf-8") as file:
        names = (line.split("#")[0].strip() for line in file)
        return {name for name in names if name}


def reason_of(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [line for line in lines if line.lower().startswith("skip")]
    return (said or lines or ["no reason was given"])[-1]


def skips_of(case):
    """(name, reason) of what was skipped: the test itself, or single cases of a cmocka program."""
    name, output = case.get("name"), case.findtext("system-out") or ""
    if case.get("status") != "run" and case.get("status") != "fail":
        message = case.find("skipped").get("message") if case.find("skipped") is not None else ""
        return [(name, reason_of(output) if message.startswith("SKIP") else message or reason_of(output))]
    cases = sorted(set(SKIPPED_CASE.findall(output)))
    return [(f"{name}:{one}", "a case of this program") for one in cases]


def main():
    try:
        cases = list(xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(f"{sys.argv[1]}: {error}")
        return 2
    allowed = read_allowed(sys.argv[2])
    skips = [skip for case in cases for skip in skips_of(case)]
    unexpected = [(name, reason) for name, reason in skips if name not in allowed]
    passed, failed = (sum(case.get("status") == status for case in cases) for status in ("run", "fail"))
    for name, reason in skips:
        mark = "skipped, as expected" if name in allowed else "SKIPPED, not expected"
        print(f"{mark}: {name}: {reason}")
    print(
        f"{len(cases)} tests: {passed} passed, {failed} failed, {len(cases) - passed - failed} not run; "
        f"{len(unexpected)} skips that were not expected"
    )
    return 2 if not cases else 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
