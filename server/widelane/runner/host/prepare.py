"""What comes before the first process: the work folder, and what is known of the host."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from .devices import Census, count
from .spec import Spec
from .store import Store, copy
from .unpack import ArchiveError, unpack

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_DMI = Path("/sys/class/dmi/id/product_name")


def make_work_folder(root: Path, spec: Spec, store: Store) -> None:
    """Make the work folder, source and inputs in it. It appears whole or not at all; one that is there is kept.

    Raises `ArchiveError` for a source or an input that can't be used.
    """
    final = root / "work"
    if final.is_dir():
        return
    making = root / "work.new"
    if making.exists():
        shutil.rmtree(making)
    making.mkdir()
    if spec.source is not None:
        sha256, key = spec.source
        archive = root / "source.tar.gz"
        store.get_to(key, archive)
        unpack(archive, making, sha256)
        archive.unlink()
    for digest in spec.inputs:
        fetch(store, digest, making)
    (making / spec.workdir).mkdir(parents=True, exist_ok=True)
    os.sync()
    making.rename(final)


def record_key(digest: str) -> str:
    """Where a unit's success record is."""
    return f"records/{digest}.json"


def fetch(store: Store, digest: str, work: Path) -> None:
    """Put the outputs of a unit where it had made them; a file that is there with that content stays.

    Raises `StoreMissingError` and `ArchiveError`.
    """
    record: dict[str, Any] = json.loads(store.get(record_key(digest)))
    base = work.resolve()
    for output in record["outputs"]:
        path = PurePosixPath(record.get("workdir", "")) / output["path"]
        target = base / path
        parent = target.parent.resolve()
        if ".." in path.parts or (base != parent and base not in parent.parents):
            raise ArchiveError(f"record of {digest}: {path} leads out of the work folder")
        if not holds(target, output["sha256"], output["size"]):
            store.get_to(f"blobs/{output['sha256']}", target, output["sha256"])


def holds(path: Path, sha256: str, size: int) -> bool:
    """Whether a file is there with that content."""
    try:
        if path.is_symlink() or path.stat().st_size != size:
            return False
        with path.open("rb") as source:
            return copy(source, None) == sha256
    except OSError:
        return False


def describe_host(spec: Spec, environ: Mapping[str, str]) -> dict[str, Any]:
    """The content of host.json. `handles` are the GPUs in CUDA's words; `clock` is for durations."""
    census = count(environ) if spec.expected_width > 0 else Census((), "no GPU is asked for")
    return {
        "lease": spec.lease,
        "hostname": socket.gethostname(),
        "gpus": [gpu.as_json() for gpu in census.gpus],
        "handles": [gpu.handle for gpu in census.gpus],
        "count": len(census.gpus),
        "trouble": census.trouble,
        "python": platform.python_version(),
        "executable": sys.executable,
        "started": time.time(),
        "clock": [boot_id(), time.monotonic()],
        "machine": machine(environ),
    }


def boot_id() -> str:
    """What tells one boot of this machine from another; "" where nothing does."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def machine(environ: Mapping[str, str]) -> dict[str, str]:
    """Name, zone and machine type by the metadata server of Compute Engine; {} elsewhere."""
    server = environ.get("GCE_METADATA_HOST", "")
    if not server:
        try:
            if not _DMI.read_text().startswith("Google"):
                return {}
        except OSError:
            return {}
        server = "metadata.google.internal"
    import http.client  # noqa: PLC0415 - it takes long to load, and most hosts don't need it

    found: dict[str, str] = {}
    for key in ("name", "zone", "machine-type"):
        try:
            connection = http.client.HTTPConnection(server, timeout=5)
            connection.request("GET", f"/computeMetadata/v1/instance/{key}", headers={"Metadata-Flavor": "Google"})
            answer = connection.getresponse()
            if answer.status == 200:
                found[key.replace("-", "_")] = answer.read().decode(errors="replace").rpartition("/")[2]
            connection.close()
        except (OSError, http.client.HTTPException):
            break
    return found
