# Starts a container engine and installs Compose. Part of deploy/offline.

root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif has sudo; then sudo "$@"; else fail "neither root nor sudo for: $*"; fi
}

install() {
    has apt-get || fail "please install $* (apt-get not found)"
    say "installing $*"
    root apt-get update -qq || true # the present package lists may suffice
    root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        fail "apt-get could not install $*"
}

engine() {
    answers && return
    if ! has dockerd; then
        install docker.io docker-compose iptables
        answers && return # started by the package
    fi
    mkdir -p "$cache"
    say "no container engine is running: starting dockerd, log in $cache/dockerd.log, stop it with: $(as_root)kill \$(cat /var/run/docker.pid)"
    root setsid dockerd >"$cache/dockerd.log" 2>&1 </dev/null &
    local _
    for _ in $(seq 60); do
        answers && return
        [ -n "$(jobs -r)" ] || break
        sleep 0.5
    done
    tail -n 3 "$cache/dockerd.log" >&2
    fail "dockerd does not respond, see $cache/dockerd.log"
}

answers() {
    local output
    output=$(docker info 2>&1) && return
    case $output in *"permission denied"*) fail "a container engine is running, but $(id -un) has no permission to use it" ;; esac
    return 1
}

as_root() { [ "$(id -u)" = 0 ] || echo "sudo "; }

# Compose 2 is a plugin of the docker command. Debian has it since version 13.
compose_plugin() {
    docker compose version >/dev/null 2>&1 && return
    local plugin=$tree/usr/libexec/docker/cli-plugins/docker-compose
    local home=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins
    [ -x "$plugin" ] || return 0
    mkdir -p "$home"
    cp "$plugin" "$home/docker-compose"
    say "installed Compose 2 as a plugin of the docker command: $home/docker-compose"
}

compose_command() {
    if docker compose version >/dev/null 2>&1; then echo docker compose; else echo docker-compose; fi
}
