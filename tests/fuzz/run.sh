#!/bin/bash
# Runs one libFuzzer program for some seconds, starting from its seeds. An input that breaks it is kept beside the program.
#
#   run.sh build/release/nested/fuzz/fuzz_proc_maps tests/fuzz/seeds/proc_maps 5
set -euo pipefail
program=$1 seeds=$2 seconds=$3

if [ ! -x "$program" ]; then
    echo "skipped: $program was not built"
    exit 77
fi
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
folders=("$corpus")
[ -d "$seeds" ] && folders+=("$seeds")
fixed_layout=()
if setarch --addr-no-randomize true 2>/dev/null; then
    fixed_layout=(setarch --addr-no-randomize)
fi
"${fixed_layout[@]}" "$program" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -max_len=16384 \
    -artifact_prefix="$(dirname "$program")/found_by_$(basename "$program")_" -print_final_stats=1 "${folders[@]}"
