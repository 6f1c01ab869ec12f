#!/bin/bash
# clang-tidy is content with every C file of the profiler and the exporters. Wants a folder that was built: generated headers.
#
#   check_tidy.sh build/release [FILE...]
set -euo pipefail
build=$(realpath "$1")
shift
cd "$(dirname "$0")/.."

if ! command -v clang-tidy >/dev/null; then
    echo "skipped: clang-tidy is not installed"
    exit 77
fi
if [ $# -eq 0 ]; then
    mapfile -t files < <(tests/list_files.sh | grep -E '^(profiler|exporters)/.*\.c$' | grep -v '\.bpf\.c$')
    set -- "${files[@]}"
fi
echo "$# files"
# What is left out: "3 warnings generated.", which counts those in other people's headers too.
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" clang-tidy --quiet -p "$build" 2> >(grep -v 'warnings\? generated\.$' >&2 || true)
