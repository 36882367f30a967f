# First thing on a machine: find a Python, fetch the bootstrap from the instance's metadata, hand over.
# It runs again at every boot; the bootstrap goes on where it was.

give_up() {
    echo "widelane: $1" >&2
    # A machine that can't even say what is wrong must not stay: off, it costs no more than its disk until it is deleted.
    shutdown -h now
    exit 1
}

mkdir -p "$root" || give_up "can't make $root"
python="$(find_python)" || give_up "no Python 3.9 or newer on this image"
name_python "$python"

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

"$python" "$root/bootstrap.py" --root "$root" || give_up "the bootstrap could not delete this machine"
