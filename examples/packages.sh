# Installs Debian packages that are missing. To be sourced.
#
#   packages_install wrk libpq-dev     # does nothing, and asks for no rights, when all of them are there

# Runs a command as root: by sudo where the user is not root.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

packages_missing() {
    local package

    for package in "$@"; do
        dpkg-query --show --showformat '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            echo "$package"
    done
}

packages_install() {
    local missing no_cluster=/etc/postgresql-common/createcluster.d/stallgraph-install.conf

    mapfile -t missing < <(packages_missing "$@")
    [ "${#missing[@]}" -gt 0 ] || return 0
    echo "installing: ${missing[*]}" >&2
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        echo "these packages are missing and only root can install them: ${missing[*]}" >&2
        return 1
    fi
    # Debian's PostgreSQL package would make and start a database server of its own; for as long as this file is
    # there it does not.
    as_root mkdir -p "${no_cluster%/*}"
    echo 'create_main_cluster = false' | as_root tee "$no_cluster" >/dev/null
    as_root apt-get update -q >&2 &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
    local status=$?
    as_root rm -f "$no_cluster"
    as_root rmdir --ignore-fail-on-non-empty "${no_cluster%/*}"
    return "$status"
}
