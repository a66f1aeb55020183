# Builds Setpoint's images with deploy/Dockerfile, on a stand-in for its base image. Part of deploy/offline.

dockerfile_images() {
    local base service
    base=$(sed -n 's/^ARG RUST_IMAGE=//p' deploy/Dockerfile)
    docker image inspect "$base" >/dev/null 2>&1 || toolchain "$base"
    for service in "${services[@]}" setpoint; do
        say "building setpoint/$service with deploy/Dockerfile"
        buildkit build --quiet -f deploy/Dockerfile --target "$service" --label "$label=true" \
            -t "setpoint/$service" . >/dev/null || fail "deploy/Dockerfile does not build $service"
    done
}

# Engines before 23 have BuildKit, but some docker commands need a plugin for it.
buildkit() {
    local docker
    for docker in $(type -ap docker); do
        if "$docker" buildx version >/dev/null 2>&1 || "$docker" --version | grep -q 'version 20\.'; then
            DOCKER_BUILDKIT=1 "$docker" "$@"
            return
        fi
    done
    fail "no docker command supports BuildKit"
}

# Makes the base image: Debian, a C compiler, and this machine's Rust toolchain.
toolchain() {
    local folder=$cache/rust sysroot
    has debootstrap || install debootstrap
    sysroot=$(rustc --print sysroot)
    say "making $1: debootstrap, gcc and $(rustc --version) (takes minutes)"
    root rm -rf "$folder"
    root debootstrap --variant=minbase --include=gcc,libc6-dev,make,pkg-config,ca-certificates \
        "$(codename)" "$folder" >"$cache/debootstrap.log" 2>&1 || fail "debootstrap failed, see $cache/debootstrap.log"
    root mkdir -p "$folder/usr/local/cargo" "$folder/usr/local/rust"
    root cp -a "$sysroot/bin" "$sysroot/lib" "$folder/usr/local/rust/"
    # Trust the certificate authorities that this machine trusts.
    root cp /etc/ssl/certs/ca-certificates.crt "$folder/etc/ssl/certs/ca-certificates.crt"
    root tar -C "$folder" --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./var/cache/apt/archives -cf - . |
        docker import -c 'ENV PATH=/usr/local/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' \
            -c 'ENV CARGO_HOME=/usr/local/cargo' -c 'ENV SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt' \
            -c "LABEL $label=true" - "$1" >/dev/null
    root rm -rf "$folder"
}

# Prints the Debian release in the name of the base image.
codename() { sed -n 's/^ARG RUST_IMAGE=.*-//p' deploy/Dockerfile; }
