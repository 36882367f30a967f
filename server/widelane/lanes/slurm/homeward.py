"""Brings home what jobs write into stores of their own, and remembers which store of ours it belongs to.

The cluster isn't asked for that: it could otherwise have files written anywhere here.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from widelane.errors import ConfigError, NotFoundError, StoreError
from widelane.lanes.protocol import Launch
from widelane.models.base import Frozen
from widelane.runner.host.attempt import write_record
from widelane.store import open_store
from widelane.store.depot import Depot, Errand, errand_of


class Note(Frozen):
    """One job: its attempt, our store, and the key of its spec there."""

    attempt_id: str
    store_url: str
    spec_key: str


class Homeward:
    """One note a job below `folder`. Safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._known: dict[str, int] = {}
        """By attempt: up to when its news are here."""
        self._errands: dict[str, Errand] = {}

    def note(self, launch: Launch) -> None:
        """Before the job is submitted. Raises `StoreError`."""
        made = Note(attempt_id=launch.attempt_id, store_url=launch.store_url, spec_key=launch.spec_key)
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_record(self._path(launch.name), made.model_dump())
        except OSError as error:
            raise StoreError(f"{self._folder} can't be written: {error}", hint="set WIDELANE_HOME") from error

    def since(self, name: str) -> int | None:
        """Up to when the news of a job are here; None when it has no store of its own, or isn't ours."""
        found = self._read(name)
        if found is None:
            return None
        with self._lock:
            return self._known.get(found.attempt_id, 0)

    def bring(self, name: str, attempt: str, depot: Depot, news: Mapping[str, Any]) -> None:
        """Bring home what is new. Raises `StoreError` and `LaneError`s; what came is kept, the rest is new again."""
        found = self._read(name)
        if found is None or found.attempt_id != attempt:
            return
        try:
            store = open_store(found.store_url)
            errand = self._errands.get(found.spec_key) or errand_of(store, found.spec_key)
        except (ConfigError, NotFoundError) as error:
            raise StoreError(error.message, hint=error.hint) from error
        self._errands[found.spec_key] = errand
        depot.bring(store, errand, news["keys"])
        with self._lock:
            self._known[attempt] = int(news["now"])

    def forget(self, name: str) -> None:
        """When nothing is left of a job."""
        found = self._read(name)
        if found is None:
            return
        with self._lock:
            self._known.pop(found.attempt_id, None)
            self._errands.pop(found.spec_key, None)
        self._path(name).unlink(missing_ok=True)

    def _read(self, name: str) -> Note | None:
        try:
            return Note.model_validate_json(self._path(name).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def _path(self, name: str) -> Path:
        if not name or name.startswith(".") or name != Path(name).name:
            raise ValueError(f"not the name of a machine: {name!r}")
        return self._folder / f"{name}.json"
