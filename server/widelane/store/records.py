"""What hosts wrote, read back. Fields that this version doesn't know are passed over."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from widelane.errors import NotFoundError, StoreError
from widelane.models.dispatch import GpuProgress
from widelane.store.client import Store


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Output(_Written):
    """One output file: path relative to the unit's folder, content, size in bytes."""

    path: str
    sha256: str
    size: int


class UnitRecord(_Written):
    """A unit that succeeded. Times are seconds since 1970; `workdir` is the unit's folder in the source tree."""

    unit: str
    outputs: tuple[Output, ...] = ()
    workdir: str = ""
    exit_code: int | None = None
    lease: str
    host: str
    gpus: tuple[str, ...] = ()
    started: float | None = None
    ended: float | None = None
    seconds: float | None = None
    peak_rss_kib: int | None = None
    log: str
    run_id: str
    dispatch_id: str


class FailureRecord(UnitRecord):
    """An attempt that didn't succeed. `reason` is a code, `detail` for people."""

    reason: str
    detail: str = ""
    signal: int | None = None
    partial: tuple[str, ...] = ()


class HostGpu(_Written):
    """One card as nvidia-smi listed it."""

    index: int
    uuid: str
    name: str
    memory_mib: int | None = None


class HostReport(_Written):
    """A host that counted its devices; `trouble` says why there are none."""

    lease: str
    hostname: str
    gpus: tuple[HostGpu, ...] = ()
    count: int
    trouble: str = ""
    python: str
    started: float
    machine: dict[str, str] = {}


class ProgressReport(_Written):
    """How far a host is."""

    total: int
    succeeded: int
    failed: int
    running: int
    gpus: tuple[GpuProgress, ...] = ()
    state: str


class FinishedReport(_Written):
    """How a lease's work ended: state succeeded, failed, env_broken or cancelled. `succeeded` includes `cached`."""

    state: str
    reason: str = ""
    total: int = 0
    succeeded: int = 0
    failed: int = 0
    cached: int = 0
    realized_width: int = 0
    merge: str | None = None
    gpu_seconds_busy: float = 0.0
    gpu_seconds_held: float = 0.0


_Report = TypeVar("_Report", bound=_Written)


def unit_records(store: Store, digests: Iterable[str]) -> dict[str, UnitRecord]:
    """The records of those units that have one, by digest. Raises `StoreError`."""
    found: dict[str, UnitRecord] = {}
    for digest in digests:
        record = _read(store, f"records/{digest}.json", UnitRecord)
        if record is not None:
            found[digest] = record
    return found


def failure_records(store: Store, dispatch_id: str) -> tuple[FailureRecord, ...]:
    """What failed in a dispatch, on any of its hosts. Raises `StoreError`."""
    keys = store.list(f"failures/{dispatch_id}/")
    found = (_read(store, key, FailureRecord) for key in keys)
    return tuple(record for record in found if record is not None)


def read_host(store: Store, lease: str) -> HostReport | None:
    """What a host said of itself; None before it did. Raises `StoreError`."""
    return _read(store, f"leases/{lease}/host.json", HostReport)


def read_progress(store: Store, lease: str) -> ProgressReport | None:
    """How far a host is; None before it said. Raises `StoreError`."""
    return _read(store, f"leases/{lease}/progress.json", ProgressReport)


def read_finished(store: Store, lease: str) -> FinishedReport | None:
    """How a lease's work ended; None before it did. Raises `StoreError`."""
    return _read(store, f"leases/{lease}/finished.json", FinishedReport)


def log_tail(store: Store, key: str, limit: int = 64 << 10) -> str:
    """The last `limit` bytes of a log as text. Raises `NotFoundError`, `StoreError`."""
    return store.get(key)[-limit:].decode(errors="replace")


def _read(store: Store, key: str, kind: type[_Report]) -> _Report | None:
    try:
        return kind.model_validate_json(store.get(key))
    except NotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise StoreError(f"{store.url}: {key} can't be read: {place}: {first['msg']}") from error
