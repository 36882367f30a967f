"""Outputs of units into a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from widelane.errors import StoreError
from widelane.store.client import Store
from widelane.store.records import Output, UnitRecord


def pull(store: Store, records: Iterable[UnitRecord], to: Path) -> tuple[Path, ...]:
    """Write the outputs where the units had made them, below `to`; returns the files.

    A file that already has the content is kept. Where two units made the same path, the one that ended last
    counts. Raises `StoreError`, also for a path that would lead out of the folder.
    """
    wanted: dict[PurePosixPath, Output] = {}
    for record in sorted(records, key=lambda record: record.ended or 0.0):
        for output in record.outputs:
            wanted[_place(record, output)] = output
    try:
        to.mkdir(parents=True, exist_ok=True)
        base = to.resolve()
    except OSError as error:
        raise StoreError(f"{to}: {error.strerror or error}") from error
    for path, output in sorted(wanted.items()):
        target = base / path
        if not target.parent.resolve().is_relative_to(base):
            raise StoreError(f"{path} leads out of {to} through a link")
        if not _has(target, output):
            store.get_to(f"blobs/{output.sha256}", target, output.sha256)
    return tuple(to / path for path in sorted(wanted))


def _place(record: UnitRecord, output: Output) -> PurePosixPath:
    path = PurePosixPath(record.workdir) / output.path
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in str(path):
        raise StoreError(f"record of unit {record.unit}: {output.path!r} isn't a path below the folder")
    return path


def _has(target: Path, output: Output) -> bool:
    try:
        if target.is_symlink() or target.stat().st_size != output.size:
            return False
        with target.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest() == output.sha256
    except OSError:
        return False
