#!/bin/sh
# run.sh FOLDER SCRIPT ARGUMENT...: runs a script of this folder in node, with its npm packages in FOLDER (installed there
# when they are missing) and pictures of what it saw in FOLDER/pictures. Exit 77: something is missing here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$1
script=$2
shift 2

skip() {
    echo "skipped: $1"
    exit 77
}

command -v node >/dev/null || skip "no node"
command -v npm >/dev/null || skip "no npm"
CHROMIUM=$(command -v chromium || command -v chromium-browser) || skip "no chromium"
export CHROMIUM

mkdir -p "$folder/pictures"
if ! cmp -s "$here/package.json" "$folder/package.json" || [ ! -d "$folder/node_modules/speedscope" ]; then
    # The list of what is installed counts only once it is: a broken install is repeated.
    rm -f "$folder/package.json"
    mkdir -p "$folder/install"
    cp "$here/package.json" "$folder/install/"
    (cd "$folder/install" && timeout 300 npm install --no-package-lock --no-audit --no-fund --loglevel=error --fetch-retries=1 \
        --fetch-retry-maxtimeout=10000 --fetch-timeout=60000) ||
        skip "npm cannot install the packages of tests/browser/package.json"
    rm -rf "$folder/node_modules"
    mv "$folder/install/node_modules" "$folder/node_modules"
    mv "$folder/install/package.json" "$folder/package.json"
fi
exec node "$here/$script" "$folder" "$@"
