# First thing in a pod: find a Python, unpack the bootstrap from the environment, hand over.
# The service starts a container again when its command ends; the bootstrap goes on where it was.

give_up() {
    echo "widelane: $1" >&2
    # Nothing of ours runs here, and the pod would bill on: the service's own tool is in every pod.
    runpodctl remove pod "${RUNPOD_POD_ID:-}" >&2
    sleep 30
    exit 1
}

mkdir -p "$root" || give_up "can't make $root"
python="$(find_python)" || give_up "no Python 3.9 or newer in this image"
name_python "$python"

"$python" - "$root/bootstrap.py" <<'UNPACK' || give_up "can't unpack the bootstrap"
import base64
import os
import sys
import zlib

text = zlib.decompress(base64.b64decode(os.environ["WIDELANE_POD_BOOTSTRAP"]))
with open(sys.argv[1] + ".new", "wb") as target:
    target.write(text)
os.replace(sys.argv[1] + ".new", sys.argv[1])
UNPACK

exec "$python" "$root/bootstrap.py" --root "$root"
