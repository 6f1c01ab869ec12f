#!/bin/bash
# Builds targets of a preset in a folder of its own and, where a label is given, runs its tests of that label there.
#
#   nested_build.sh asan build/release/nested/asan unit_tests "unit|golden"
set -euo pipefail
preset=$1 folder=$2 label=${4:-}
read -ra targets <<<"$3"
cd "$(dirname "$0")/.."

if [ "$preset" = fuzz ] && ! command -v clang >/dev/null; then
    echo "skipped: libFuzzer needs clang, which is not installed"
    exit 77
fi
cmake --preset "$preset" -B "$folder"
cmake --build "$folder" --parallel "$(nproc)" --target "${targets[@]}" -- -k 0 # says all that is wrong, not the first thing alone
[ -n "$label" ] || exit 0

# The sanitizers of gcc 12 and clang 14 know fewer address layouts than a kernel with 32 random bits (vm.mmap_rnd_bits) makes.
fixed_layout=()
if setarch --addr-no-randomize true 2>/dev/null; then
    fixed_layout=(setarch --addr-no-randomize)
fi
"${fixed_layout[@]}" ctest --test-dir "$folder" --label-regex "^($label)\$" --no-tests=error --output-on-failure \
    --parallel "$(nproc)"
