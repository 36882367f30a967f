#!/bin/sh
# First thing on a machine: find a Python, fetch the bootstrap from the instance's metadata, hand over.
# It runs again at every boot; the bootstrap goes on where it was.
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

give_up() {
    echo "widelane: $1" >&2
    # A machine that can't even say what is wrong must not stay: off, it costs no more than its disk until it is deleted.
    shutdown -h now
    exit 1
}

mkdir -p "$root" || give_up "can't make $root"
python="$(find_python)" || give_up "no Python 3.9 or newer on this image"
if ! command -v python >/dev/null; then
    # Many images have only python3, and many plans say python.
    mkdir -p "$root/bin"
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >"$root/bin/python"
    chmod 755 "$root/bin/python"
    PATH="$PATH:$root/bin"
fi

"$python" - "$root/bootstrap.py" <<'FETCH' || give_up "can't read the bootstrap from the metadata"
import os
import sys
import time
import urllib.request

host = os.environ.get("GCE_METADATA_HOST") or "metadata.google.internal"
request = urllib.request.Request(
    "http://" + host + "/computeMetadata/v1/instance/attributes/widelane-bootstrap",
    headers={"Metadata-Flavor": "Google"},
)
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for left in range(60, 0, -1):
    try:
        with direct.open(request, timeout=10) as answer:
            text = answer.read()
        break
    except OSError:
        if left == 1:
            raise
        time.sleep(2)
with open(sys.argv[1] + ".new", "wb") as target:
    target.write(text)
os.replace(sys.argv[1] + ".new", sys.argv[1])
FETCH

exec "$python" "$root/bootstrap.py" --root "$root"
