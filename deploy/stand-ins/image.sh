# Makes images from folders. Part of deploy/offline.

label=setpoint.dev/stand-in

# Copies the programs that exist in $tree, with the libraries that they load, to $stage/NAME.
program() { # NAME PATH...
    local out=$stage/$1 path file
    shift
    for path in "$@"; do
        [ -e "$tree/$path" ] || continue
        for file in "$tree/$path" $(libraries "$tree/$path"); do
            install_file "$file" "$out/${file#"$tree/"}"
        done
        loader_link "$out" "$tree/$path"
    done
}

install_file() { [ -e "$2" ] || { mkdir -p "$(dirname "$2")" && cp -L "$1" "$2"; }; }

# Prints the libraries of a program in $tree, including the loader. Uses the loader of $tree, not that of this machine.
libraries() {
    local loader library_path
    loader=$(find "$tree" -name 'ld-linux*.so.*' -print -quit)
    library_path=$(find "$tree/lib" "$tree/usr/lib" -name 'lib*.so*' -printf '%h\n' 2>/dev/null | sort -u | paste -sd:)
    "$loader" --library-path "$library_path" --list "$1" 2>/dev/null | grep -o "$tree/[^ ]*" || true
}

# Copies the loader to the path that the program has for it: /lib64/…, where packages have /usr/lib64/….
loader_link() {
    local name path
    name=$(find "$1" -name 'ld-linux*.so.*' -print -quit)
    path=$(grep -a -o -m 1 '/lib[0-9]*/ld-linux[^[:cntrl:]]*' "$2" | head -n 1) || true
    [ -z "$name" ] || [ -z "$path" ] || install_file "$name" "$1$path"
}

# Makes an image from $stage/FOLDER, unless it is up to date or is not a stand-in.
image() { # NAME FOLDER CHANGE...
    local name=$1 folder=$stage/$2 digest known change changes=()
    shift 2
    mkdir -p "$folder/tmp" "$folder/etc"
    chmod 1777 "$folder/tmp"
    printf 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n' >"$folder/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$folder/etc/group"
    digest=$({ pack "$folder"; printf '%s\n' "$@"; } | sha256sum | cut -c -64)
    known="{{ index .Config.Labels \"$label\" }} {{ index .Config.Labels \"$label.digest\" }}"
    known=$(docker image inspect -f "$known" "$name" 2>/dev/null) || known=none
    case $known in
        none | "true "*) ;;
        *) say "$name exists and is not a stand-in: not replaced"; return ;;
    esac
    [ "$known" != "true $digest" ] || return 0
    for change in "$@" "LABEL $label=true $label.digest=$digest"; do changes+=(-c "$change"); done
    pack "$folder" | docker import "${changes[@]}" - "$name" >/dev/null
    say "made $name ($(du -sh "$folder" | cut -f 1))"
}

# Reproducible, so that a second run finds the image up to date.
pack() { tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - .; }

busybox_links() {
    local busybox applet
    mkdir -p "$1/bin"
    busybox=$(find "$1" -name busybox -type f -print -quit)
    [ "$busybox" = "$1/bin/busybox" ] || mv "$busybox" "$1/bin/busybox"
    for applet in $("$1/bin/busybox" --list); do
        [ "$applet" = busybox ] || ln -sf busybox "$1/bin/$applet"
    done
}

nginx_files() {
    mkdir -p "$1/etc/nginx" "$1/usr/share/nginx/html" "$1/var/log/nginx" "$1/var/lib/nginx" "$1/run"
    cp deploy/stand-ins/nginx.conf "$1/etc/nginx/nginx.conf"
    echo '<!DOCTYPE html><title>Welcome to nginx!</title><h1>Welcome to nginx!</h1><p>A stand-in for its image.</p>' \
        >"$1/usr/share/nginx/html/index.html"
}
