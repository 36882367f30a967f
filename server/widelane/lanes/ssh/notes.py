"""What this side must know of its machines on a host: whose results they are and where those belong.

It isn't asked of the host, which could otherwise have files written anywhere here.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from widelane.errors import StoreError
from widelane.models.base import Frozen
from widelane.runner.host.attempt import write_record


class Note(Frozen):
    """One machine: its attempt, our store, and the key of its spec there."""

    attempt_id: str
    store_url: str
    spec_key: str


class Notes:
    """One file a machine below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, note: Note) -> None:
        """Before anything is started. Raises `StoreError`."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_record(self._path(name), note.model_dump())
        except OSError as error:
            raise StoreError(f"{self._folder} can't be written: {error}", hint="set WIDELANE_HOME") from error

    def read(self, name: str) -> Note | None:
        """None for a machine that wasn't started from here."""
        try:
            return Note.model_validate_json(self._path(name).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None

    def remove(self, name: str) -> None:
        """When the machine is gone."""
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        if not name or name.startswith(".") or name != Path(name).name:
            raise ValueError(f"not the name of a machine: {name!r}")
        return self._folder / f"{name}.json"
