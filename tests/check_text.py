#!/usr/bin/python3
"""Nothing in the project's files belongs to one machine, is left over, or is a big binary. One line for each fault."""

import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
BINARY_LIMIT_BYTES = 100 * 1024
# Not preceded by what makes it the end of a longer path: "/proc/%d/root/", f"{proc}/root/".
PATH_START = r"(?<![\w.%})\]>*$-])"
FORBIDDEN = {
    "a path of one machine": re.compile(PATH_START + r"/(work|root|home/\w+|tmp/build\w*)/"),
    "left over": re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"),
    "a merge conflict": re.compile(r"^(<{7} |>{7} |={7}$)"),
}
HOST = re.compile(r"\bhttps?://(?:[^/\s\"'@]+@)?([A-Za-z0-9.-]+)")
ALLOWED_HOST = re.compile(
    r"(^|\.)(localhost|127\.0\.0\.1|example\.(com|org)|w3\.org|kernel\.org|github\.com|speedscope\.app|man7\.org|"
    r"pprof\.me|gnu\.org|llvm\.org|debian\.org|postgresql\.org|sourceware\.org|refspecs\.linuxfoundation\.org)$"
)


def check_line(line):
    for what, pattern in FORBIDDEN.items():
        found = pattern.search(line)
        if found:
            yield f"{what}: {found.group(0)}"
    for host in HOST.findall(line):
        if re.search("[A-Za-z0-9]", host) and not ALLOWED_HOST.search(host.rstrip(".")):
            yield f"a host that is not in the list of tests/check_text.py: {host}"


def check_file(path):
    with open(os.path.join(ROOT, path), "rb") as file:
        content = file.read()
    if b"\0" in content[:65536]:
        if len(content) > BINARY_LIMIT_BYTES:
            yield f"{path}: a binary of {len(content)} bytes, more than {BINARY_LIMIT_BYTES}"
        return
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        for fault in check_line(line):
            yield f"{path}:{number}: {fault}"


def self_test():
    cases = [
        ('open("/work' '/main/x")', 1),
        ("cd /root" "/x", 1),
        ('string_format("/proc/%d/root' '/tmp", pid)', 0),
        ('f"{proc}/root' '/tmp"', 0),
        ("/home" "/me/x", 1),
        ("/* TO" "DO: later */", 1),
        ('mkdtemp("/tmp/x-XXXXXX")', 0),
        ("see https" "://registry.somewhere.net/x", 1),
        ("https" "://user:word@mirror.somewhere.net/x", 1),
        ("see https://www.speedscope.app/, and http://127.0.0.1:8080/", 0),
    ]
    failures = 0
    for line, wanted in cases:
        faults = list(check_line(line))
        failures += len(faults) != wanted
        print(f"{'ok' if len(faults) == wanted else 'NOT OK'}: {line} -> {faults}")
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 1 if self_test() else 0
    listing = subprocess.run([os.path.join(ROOT, "tests/list_files.sh")], check=True, stdout=subprocess.PIPE, text=True)
    paths = listing.stdout.splitlines()
    faults = [fault for path in paths for fault in check_file(path)]
    print("\n".join(faults) if faults else f"{len(paths)} files, no fault")
    return 1 if faults or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
