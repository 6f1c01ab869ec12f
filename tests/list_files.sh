#!/bin/bash
# Prints the project's own files, one a line from the root: what git tracks or would track; without git, all but build folders.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -e .git ] && command -v git >/dev/null; then
    # Root may look at a clone that belongs to somebody else.
    git -c safe.directory='*' ls-files --cached --others --exclude-standard --deduplicate
else
    find . -type f -not -path './build*' -not -path '*/node_modules/*' -printf '%P\n'
fi | sort | while read -r file; do
    if [ -f "$file" ]; then
        echo "$file"
    fi
done
