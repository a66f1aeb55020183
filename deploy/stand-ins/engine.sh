# A container engine that answers, and a Compose to drive it. Part of deploy/offline.

root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif has sudo; then sudo "$@"; else fail "neither root nor sudo for: $*"; fi
}

install() {
    has apt-get || fail "please install $* (there is no apt-get to do it)"
    say "installing $*"
    root apt-get update -qq || true # the lists at hand may do
    root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        fail "apt-get could not install $*"
}

engine() {
    answers && return
    if ! has dockerd; then
        install docker.io docker-compose iptables
        answers && return # where packages start what they bring
    fi
    mkdir -p "$cache"
    say "no container engine answers: starting dockerd, log in $cache/dockerd.log, stop it with: $(as_root)kill \$(cat /var/run/docker.pid)"
    root setsid dockerd >"$cache/dockerd.log" 2>&1 </dev/null &
    local _
    for _ in $(seq 60); do
        answers && return
        [ -n "$(jobs -r)" ] || break
        sleep 0.5
    done
    tail -n 3 "$cache/dockerd.log" >&2
    fail "dockerd does not answer, see $cache/dockerd.log"
}

answers() {
    local said
    said=$(docker info 2>&1) && return
    case $said in *"permission denied"*) fail "a container engine runs, and $(id -un) may not talk to it" ;; esac
    return 1
}

as_root() { [ "$(id -u)" = 0 ] || echo "sudo "; }

# Compose 2 is a plugin of the docker command; Debian has it from 13 on.
compose_plugin() {
    docker compose version >/dev/null 2>&1 && return
    local plugin=$tree/usr/libexec/docker/cli-plugins/docker-compose
    local home=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins
    [ -x "$plugin" ] || return 0
    mkdir -p "$home"
    cp "$plugin" "$home/docker-compose"
    say "Compose 2 is now a plugin of the docker command: $home/docker-compose"
}

compose_command() {
    if docker compose version >/dev/null 2>&1; then echo docker compose; else echo docker-compose; fi
}
