"""A second store, in a folder of a host that can't reach ours: what work needs goes there, what it wrote comes back.

Ours stays the truth. Outputs come back before the record that names them, and the last word of a lease comes last, so
that a line that breaks anywhere leaves nothing that says more than is here.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from widelane.errors import StoreError
from widelane.store.client import Store
from widelane.store.publish import runner_key
from widelane.store.records import UnitRecord, unit_records
from widelane.transport import Host, Program, Request

DEPOT = ("widelane.transport.remote.places", "widelane.transport.remote.depot")
"""Modules of the far side, for programs that have it too."""
_PROGRAM = Program(DEPOT)
_BATCH_KEYS = 200
_BATCH_BYTES = 64 << 20
_NEWS = ("host.json", "progress.json")
_LAST_WORD = "finished.json"
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Errand:
    """What a lease's host may write: only keys of its own lease and dispatch, and records of its own units."""

    lease: str
    dispatch_id: str
    digests: frozenset[str]

    def owns(self, key: str) -> bool:
        """Whether that host may write this key."""
        if key.startswith("records/"):
            return self.digest(key) in self.digests
        own = (f"leases/{self.lease}/", f"logs/{self.lease}/", f"failures/{self.dispatch_id}/")
        return key.startswith(own) and ".." not in key.split("/")

    def digest(self, key: str) -> str:
        """The unit of a record's key."""
        return key.removeprefix("records/").removesuffix(".json")


def errand_of(store: Store, spec_key: str) -> Errand:
    """The errand of a spec. Raises `NotFoundError`, `StoreError`."""
    spec = _spec(store, spec_key)
    return Errand(str(spec["lease"]), str(spec["dispatch_id"]), frozenset(_digests(spec)))


def shipment(store: Store, spec_key: str, runner_sha256: str) -> tuple[str, ...]:
    """The keys of our store that the work of a spec reads, the spec last: records before it, and their outputs.

    Outputs of units that are done already are needed by a merge that isn't. Raises `NotFoundError`, `StoreError`.
    """
    spec = _spec(store, spec_key)
    keys = [runner_key(runner_sha256)]
    if spec.get("source") is not None:
        keys.append(str(spec["source"]["key"]))
    done = unit_records(store, _digests(spec))
    merge = spec.get("merge")
    merged = merge is None or merge["digest"] in done
    inputs = unit_records(store, [str(digest) for digest in spec.get("inputs", [])])
    wanted = {**inputs, **({} if merged else done)}
    keys += [f"blobs/{output.sha256}" for record in wanted.values() for output in record.outputs]
    keys += [f"records/{digest}.json" for digest in {**inputs, **done}]
    return tuple(dict.fromkeys([*keys, spec_key]))


class Depot:
    """The folder `folder` on a host as a store, in step with ours."""

    def __init__(self, host: Host, folder: str) -> None:
        self._host = host
        self._folder = folder

    def fill(self, store: Store, missing: Sequence[str]) -> None:
        """Bring these keys there, in order.

        Raises:
            NotFoundError, StoreError: ours doesn't have one of them.
            LaneError: as `transport.Host`; RefusedError when the folder is gone.
        """
        with tempfile.TemporaryDirectory(prefix="widelane-depot-") as folder:
            files = {key: _file(store, key, Path(folder, str(n))) for n, key in enumerate(missing)}
            for batch in _batches([(key, path.stat().st_size) for key, path in files.items()]):
                asked = {"folder": self._folder, "keys": batch}
                self._host.call(Request(_PROGRAM, "store", asked, [files[key] for key in batch]))

    def bring(self, store: Store, errand: Errand, news: Iterable[Sequence[Any]]) -> None:
        """Bring these keys (with sizes) into our store, as far as they are the host's to write and new here.

        Raises:
            StoreError: ours can't be written, or what came isn't what it says.
            LaneError: as `transport.Host`.
        """
        sizes = {str(key): int(size) for key, size in news if errand.owns(str(key))}
        wanted = {key: size for key, size in sizes.items() if _changes(key) or not store.exists(key)}
        records = {key: size for key, size in wanted.items() if key.startswith("records/")}
        ends = {key: size for key, size in wanted.items() if key.endswith(f"/{_LAST_WORD}")}
        for key, path in self._fetch({k: s for k, s in wanted.items() if k not in records and k not in ends}):
            store.put(key, path.read_bytes(), durable=False)
        for key, path in self._fetch(records):
            self._take_record(store, errand, key, path.read_bytes())
        for key, path in self._fetch(ends):
            store.put_if_absent(key, path.read_bytes())

    def _take_record(self, store: Store, errand: Errand, key: str, data: bytes) -> None:
        try:
            record = UnitRecord.model_validate_json(data)
        except ValidationError as error:
            raise StoreError(f"{self._host.target}: {key} can't be read: {error.errors()[0]['msg']}") from error
        if record.unit != errand.digest(key):
            raise StoreError(f"{self._host.target}: {key} is a record of {record.unit}")
        blobs = {f"blobs/{_sha256(output.sha256)}": output.size for output in record.outputs}
        absent = {blob: size for blob, size in blobs.items() if not store.exists(blob)}
        for blob, path in self._fetch(absent):
            store.put_file(blob, path, blob.removeprefix("blobs/"))
        store.put_if_absent(key, data)

    def _fetch(self, sizes: dict[str, int]) -> Iterator[tuple[str, Path]]:
        """Keys with files that are there until the next one is asked for."""
        for batch in _batches(list(sizes.items())):
            with tempfile.TemporaryDirectory(prefix="widelane-depot-") as folder:
                asked = {"folder": self._folder, "keys": batch}
                reply = self._host.exchange(Request(_PROGRAM, "fetch", asked, into=Path(folder)))
                for key, received in zip(batch, reply.files, strict=True):
                    if received.error:
                        raise StoreError(f"{self._host.target}: {key}: {received.error}")
                    yield key, received.path


def _spec(store: Store, spec_key: str) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(store.get(spec_key))
    return spec


def _digests(spec: dict[str, Any]) -> list[str]:
    merge = [spec["merge"]] if spec.get("merge") is not None else []
    return [str(task["digest"]) for task in [*spec["units"], *merge]]


def _changes(key: str) -> bool:
    """Whether a key is ever written with another content."""
    name = key.rpartition("/")[2]
    return (key.startswith("leases/") and name in _NEWS) or (key.startswith("logs/") and name == "setup.log")


def _sha256(text: str) -> str:
    if len(text) != 64 or not set(text) <= _HEX:
        raise StoreError(f"{text!r} isn't a SHA-256")
    return text


def _file(store: Store, key: str, temp: Path) -> Path:
    """A file with the value of a key: its own where our store is a folder."""
    if store.folder is not None:
        own = store.folder / key
        if own.is_file():
            return own
    store.get_to(key, temp)
    return temp


def _batches(sizes: list[tuple[str, int]]) -> Iterator[list[str]]:
    """Keys in order, so many at once that a call stays short; a large one alone."""
    batch: list[str] = []
    total = 0
    for key, size in sizes:
        if batch and (len(batch) >= _BATCH_KEYS or total + size > _BATCH_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(key)
        total += size
    if batch:
        yield batch
