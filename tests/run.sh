#!/bin/bash
# Every test, from nothing: installs the Debian packages that are missing, builds, runs ctest. As root, or with sudo.
#
#   tests/run.sh [--ci] [CTEST-ARGUMENT...]      e.g. tests/run.sh -L unit
#
# --ci (or CI=true): a skip that tests/expected_skips.txt does not allow is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
. examples/packages.sh

build=build/release
strict=${CI:-false}
if [ "${1:-}" = --ci ]; then
    strict=true
    shift
fi

# The packages of tests/packages.txt, without those whose command is there already.
wanted_packages() {
    local package command

    sed -E 's/#.*//; /^\s*$/d' tests/packages.txt | while read -r _ package command; do
        if [ -z "$command" ] || ! command -v "$command" >/dev/null; then
            echo "$package"
        fi
    done
}

mapfile -t packages < <(wanted_packages)
packages_install "${packages[@]}"
cmake --preset release
cmake --build "$build" --parallel "$(nproc)"

# What tests need to see of other processes takes root. Files that root leaves in the build folder become the caller's again.
rights=()
if [ "$(id -u)" -ne 0 ]; then
    rights=(sudo --preserve-env)
    trap 'sudo chown -R "$(id -u):$(id -g)" build' EXIT
fi

# ctest's closing lines are held back, so that they are the last ones.
log=$build/ctest.log
status=0
"${rights[@]}" ctest --test-dir "$build" --output-on-failure --no-tests=error --no-label-summary --parallel "$(nproc)" \
    --output-junit ctest.xml --test-output-size-passed 1000000 --test-output-size-failed 1000000 "$@" </dev/null 2>&1 |
    tee "$log" | sed -u '/^[0-9]*% tests passed/,$d' || status=$?

tests/report.py "$build/ctest.xml" tests/expected_skips.txt || {
    [ "$strict" = false ] || status=1
}
echo
sed -n '/^[0-9]*% tests passed/,$p' "$log"
exit "$status"
