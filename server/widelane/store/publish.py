"""Runner, source and spec into the store."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from widelane.runner import bundle
from widelane.store.archive import Packed, pack
from widelane.store.client import Store


def publish_runner(store: Store) -> str:
    """The SHA-256 of this version's runner file, which is then in the store. Raises `StoreError`."""
    data = bundle.build()
    sha256 = bundle.digest(data)
    store.put_if_absent(runner_key(sha256), data)
    return sha256


def runner_key(sha256: str) -> str:
    """Where a runner file is."""
    return f"runners/{sha256}.pyz"


def publish_source(store: Store, folder: Path, exclude: Iterable[str] = ()) -> Packed:
    """The archive of a folder, which is then in the store. Raises `StoreError`.

    `exclude` holds the plan file and the declared outputs, relative to the folder; the store's own folder is
    left out without being named.
    """
    patterns = list(exclude)
    inside = store.folder
    if inside is not None and inside.resolve().is_relative_to(folder.resolve()):
        patterns.append(inside.resolve().relative_to(folder.resolve()).as_posix())
    with tempfile.TemporaryDirectory(prefix="widelane-source-") as temporary:
        archive = Path(temporary) / "source.tar.gz"
        packed = pack(folder, archive, patterns)
        if not store.exists(packed.key):
            store.put_file(packed.key, archive)
    return packed


def write_spec(store: Store, dispatch_id: str, attempt_id: str, spec: Mapping[str, Any]) -> str:
    """The key of the spec that the host of this attempt will read. Raises `StoreError`."""
    key = f"specs/{dispatch_id}/{attempt_id}.json"
    store.put(key, json.dumps(spec, indent=1, sort_keys=True).encode())
    return key
