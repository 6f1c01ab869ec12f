#!/bin/bash
# Every C file is formatted as .clang-format says. "check_format.sh --fix" formats them.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v clang-format >/dev/null; then
    echo "skipped: clang-format is not installed"
    exit 77
fi
how=(--dry-run -Werror)
if [ "${1:-}" = --fix ]; then
    how=(-i)
fi
mapfile -t files < <(tests/list_files.sh | grep -E '\.[ch]$')
echo "${#files[@]} files"
clang-format "${how[@]}" "${files[@]}"
