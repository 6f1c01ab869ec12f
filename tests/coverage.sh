#!/bin/bash
# Which share of each source file's lines the unit tests reach, the least covered first.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/build/coverage

cmake --preset coverage >/dev/null
find "$build" -name '*.gcda' -delete
cmake --build "$build" --parallel "$(nproc)" >/dev/null
ctest --preset coverage --parallel "$(nproc)" || true
cd "$build"
find . -name '*.gcda' -path '*/profiler/*' -o -name '*.gcda' -path '*/exporters/*' | xargs gcov --no-output --relative-only \
    --source-prefix "$OLDPWD" 2>/dev/null | awk '
    /^File / { gsub(/[\047]/, "", $2); file = $2 }
    /^Lines executed:/ && file ~ /\.c$/ { split($0, part, /[:% ]+/); print part[3] "\t" part[5] "\t" file }
    { if ($0 !~ /^File /) file = "" }' | sort -n | awk '
    { printf "%6.1f %% of %4d  %s\n", $1, $2, $3; reached += $1 * $2 / 100; lines += $2 }
    END { if (lines) printf "%6.1f %% of %d lines\n", 100 * reached / lines, lines }'
