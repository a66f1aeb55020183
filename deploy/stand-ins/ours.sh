# Makes images of Setpoint's binaries. Part of deploy/offline.

services=(gateway deployment-controller replicaset-controller scheduler controller-manager dns node-agent)

# Makes images from existing binaries, or builds them.
packed_images() {
    local service
    build_services
    for service in "${services[@]}" setpoint; do
        binary "$service" "$service"
        image "setpoint/$service" "$service" 'USER 65532:65532' "ENTRYPOINT [\"/$service\"]"
    done
    # With the C library of the packages, which is no older than that of this machine if that is Debian.
    program proxy usr/sbin/nft usr/sbin/conntrack bin/ip usr/bin/ip
    binary proxy proxy
    image setpoint/proxy proxy 'ENV PATH=/usr/sbin:/usr/bin:/bin' 'USER 65532:65532' 'ENTRYPOINT ["/proxy"]'
}

# Makes the stand-ins for images without a Debian package: Jaeger, and the pause image.
support_images() {
    build_services
    binary node-agent node-agent
    image registry.k8s.io/pause:3.10 node-agent 'USER 65535:65535' 'ENTRYPOINT ["/node-agent", "pause"]'
    # Built separately, since the dependencies of the tests would change the features of the services' dependencies.
    build jaeger
    binary jaeger jaeger
    image "$(image_of jaeger)" jaeger 'USER 65532:65532' 'ENTRYPOINT ["/jaeger"]' 'EXPOSE 4317' 'EXPOSE 16686'
}

build_services() {
    [ -n "$binaries" ] && return
    build multicall
    local programs=${CARGO_TARGET_DIR:-target}/release
    "$programs/multicall" install "$programs"
}

build() {
    [ -n "$binaries" ] && return
    has cargo || PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"
    has cargo || fail "cargo not found; install Rust from https://rustup.rs"
    say "building $* (takes minutes the first time)"
    cargo build --quiet --release --locked "${@/#/--bin=}" || fail "the build failed, see above"
}

# Copies a binary of Setpoint, with the libraries that it loads, to $stage/NAME as /NAME.
binary() { # NAME BINARY
    local out=$stage/$1 file=${binaries:-${CARGO_TARGET_DIR:-target}/release}/$2 library
    [ -x "$file" ] || fail "$file not found; build it, or omit --binaries"
    mkdir -p "$out"
    cp "$file" "$out/$1"
    # Most of a debug build is debug information, which is not needed in a container.
    ! has strip || strip --strip-debug "$out/$1"
    for library in $(ldd "$file" | grep -o '/[^ ]*'); do
        # Libraries of packages, which are of another version, are not mixed with those of this machine.
        [ -n "$(find "$out" -name "${library##*/}" -print -quit)" ] || install_file "$library" "$out$library"
    done
}
