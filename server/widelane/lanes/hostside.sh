#!/bin/sh
# What every machine does first, whatever its lane. A lane's own lines follow in the same text: they say how to
# give up, and call what is defined here.
set -u

: "${HOME:=/root}"
root="$HOME/.widelane-host"
PATH="${PATH:-/usr/sbin:/usr/bin:/sbin:/bin}:/opt/conda/bin:/usr/local/nvidia/bin:/usr/local/cuda/bin:/usr/local/bin"
export HOME PATH

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null
}

find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 \
        /opt/conda/bin/python3 /opt/python/bin/python3 /usr/local/bin/python3 /usr/bin/python3; do
        path="$(command -v "$name" 2>/dev/null)" || continue
        if new_enough "$path"; then
            echo "$path"
            return 0
        fi
    done
    return 1
}

name_python() {
    # Many images have only python3, and many plans say python.
    if ! command -v python >/dev/null; then
        mkdir -p "$root/bin"
        printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" >"$root/bin/python"
        chmod 755 "$root/bin/python"
        PATH="$PATH:$root/bin"
    fi
}

