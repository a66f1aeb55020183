# Downloads and unpacks Debian packages with their dependencies, without installing them. Part of deploy/offline.

# Debian 13 has a sufficiently new etcd. Mirrors of Debian 12 usually have it, too.
suite=trixie

packages() {
    local wanted=(etcd-server etcd-client haproxy nginx busybox-static nftables conntrack iproute2)
    [ $extras = no ] || wanted+=(prometheus)
    has apt-get || fail "the stand-ins are made from Debian packages, but apt-get was not found"
    if ! fetch docker-compose "${wanted[@]}"; then
        suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-this machine}")
        say "packages of trixie are not available; using those of $suite"
        fetch "${wanted[@]}" || fail "apt-get could not download ${wanted[*]}, see $cache/apt.log"
    fi
    compose_plugin
}

# Unpacks packages and their dependencies into $tree.
fetch() {
    tree=$cache/$suite/tree
    local stamp=$cache/$suite/unpacked archives=$cache/$suite/cache/archives
    unpacked "$stamp" "$@" && return
    say "fetching and unpacking $* of $suite"
    rm -rf "$tree" "$stamp" "$archives"
    mkdir -p "$tree" "$cache/$suite/lists/partial" "$archives/partial"
    isolate || return
    apt update >"$cache/apt.log" 2>&1 || return
    apt install --download-only -y --no-install-recommends "$@" >>"$cache/apt.log" 2>&1 || return
    local package
    for package in "$archives"/*.deb; do dpkg-deb -x "$package" "$tree" || return; done
    for package in "$archives"/*.deb; do dpkg-deb -f "$package" Package Version | paste -s -; done >"$cache/$suite/versions"
    rm -rf "$archives"
    echo "$*" >"$stamp"
}

unpacked() { # STAMP PACKAGE...
    local stamp=$1 package
    shift
    for package in "$@"; do grep -qsw -e "$package" "$stamp" || return; done
}

# Sets $options so that apt uses only $suite, from the mirror of this machine's Debian.
isolate() {
    local sources=$cache/$suite/sources.list mirror
    options=(-o Debug::NoLocking=1 -o "Dir::State::lists=$cache/$suite/lists" -o "Dir::Cache=$cache/$suite/cache"
        -o Dir::State::status=/dev/null -o APT::Sandbox::User=)
    [ $suite = trixie ] || return 0
    mirror=$(cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
        awk '$1 == "URIs:" { print $2; exit } $1 == "deb" && /debian/ { print $2; exit }')
    [ -n "$mirror" ] || return
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$sources"
    options+=(-o "Dir::Etc::sourcelist=$sources" -o Dir::Etc::sourceparts=/dev/null)
}

apt() { apt-get "${options[@]}" "$@"; }

# Prints the upstream version of a package in $tree.
version_of() {
    awk -v name="$1" '$2 == name { print $4 }' "$cache/$suite/versions" | sed 's/^[0-9]*://; s/[-+].*//'
}
