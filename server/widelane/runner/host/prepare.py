"""What comes before the first process: the work folder, and what is known of the host."""

from __future__ import annotations

import http.client
import json
import os
import platform
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from .devices import Census, count
from .spec import Spec, relative
from .store import Store
from .unpack import unpack

_DMI = Path("/sys/class/dmi/id/product_name")


def work_folder(root: Path, spec: Spec, store: Store) -> Path:
    """The work folder with source and inputs in it. It appears whole or not at all; one that is there is kept."""
    final = root / "work"
    if final.is_dir():
        return final
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
        lay(store, read_unit_record(store, digest), making)
    (making / spec.workdir).mkdir(parents=True, exist_ok=True)
    os.sync()
    making.rename(final)
    return final


def record_key(digest: str) -> str:
    """Where a unit's success record is."""
    return f"records/{digest}.json"


def read_unit_record(store: Store, digest: str) -> dict[str, Any]:
    """The success record of a unit. Raises `StoreMissingError`."""
    return json.loads(store.get(record_key(digest)))


def lay(store: Store, record: Mapping[str, Any], work: Path) -> None:
    """Put the outputs of a record where the unit had made them; a file that is there with that content stays."""
    base = work.resolve()
    for output in record["outputs"]:
        path = PurePosixPath(record.get("workdir", "")) / relative(output["path"], "record")
        target = base / relative(str(path), "record")
        parent = target.parent.resolve()
        if base != parent and base not in parent.parents:
            raise ValueError(f"record of {record['unit']}: {path} leads outside through a link")
        store.get_to(f"blobs/{output['sha256']}", target, output["sha256"])


def describe_host(spec: Spec, environ: Mapping[str, str], started: float) -> dict[str, Any]:
    """The content of host.json, and how the slots of this host are made."""
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
        "started": started,
        "machine": machine(environ),
    }


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
