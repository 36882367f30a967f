"""The journal on disk: SQLite in WAL mode, one row an event.

`event` is the truth and only grows. `run` is an index of it, written in the same transaction. A commit is on the disk
when it returns (`synchronous=FULL`), so an effect that follows it can always be found again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from widelane.errors import LedgerError
from widelane.ledger.events import Event, RunEnded, RunRequested, parse_event
from widelane.models.clock import Clock

_SCHEMA = """
CREATE TABLE IF NOT EXISTS event (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  at TEXT NOT NULL,
  run_id TEXT NOT NULL,
  dispatch_id TEXT,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS event_by_run ON event (run_id, seq);
CREATE INDEX IF NOT EXISTS event_by_kind ON event (kind, at);
CREATE TABLE IF NOT EXISTS run (
  run_id TEXT PRIMARY KEY,
  run_key TEXT NOT NULL,
  task TEXT,
  requested_seq INTEGER NOT NULL,
  ended INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS run_by_key ON run (run_key, requested_seq);
"""
_VERSION = 1
_BUSY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with where and when the journal holds it."""

    seq: int
    at: str
    run_id: str
    dispatch_id: str | None
    event: Event


class Journal:
    """One connection to the journal of a home; not shared between threads."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Open it, creating it when `path` isn't there.

        Raises:
            LedgerError: it can't be opened, or a newer version of the program wrote it.
        """
        self._clock = clock
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise LedgerError(f"{path}: {error}", hint="check that WIDELANE_HOME is a writable folder") from error

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        version = int(self._db.execute("PRAGMA user_version").fetchone()[0])
        if version > _VERSION:
            self._db.close()
            raise LedgerError(f"{self.path}: written by a newer widelane (format {version}, this one knows {_VERSION})")
        if version < _VERSION:
            with self.transaction():
                for statement in _SCHEMA.split(";"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version={_VERSION}")

    def now(self) -> datetime:
        """The time that an event written now would carry."""
        return self._clock.now()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Hold the write lock, so that what is read inside is still so when the block commits."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def append(self, run_id: str, event: Event, dispatch_id: str | None = None) -> int:
        """Add an event, durably; its sequence number. Joins a transaction that is open."""
        if self._db.in_transaction:
            return self._insert(run_id, event, dispatch_id)
        with self.transaction():
            return self._insert(run_id, event, dispatch_id)

    def _insert(self, run_id: str, event: Event, dispatch_id: str | None) -> int:
        at = self.now().isoformat()
        cursor = self._db.execute(
            "INSERT INTO event (at, run_id, dispatch_id, kind, body) VALUES (?, ?, ?, ?, ?)",
            (at, run_id, dispatch_id, event.kind, event.model_dump_json(exclude_defaults=False)),
        )
        seq = int(cursor.lastrowid or 0)
        if isinstance(event, RunRequested):
            self._db.execute(
                "INSERT INTO run (run_id, run_key, task, requested_seq) VALUES (?, ?, ?, ?)",
                (run_id, event.run_key, event.task, seq),
            )
        elif isinstance(event, RunEnded):
            self._db.execute("UPDATE run SET ended = 1 WHERE run_id = ?", (run_id,))
        return seq

    def events(self, run_id: str, after: int = 0) -> tuple[Recorded, ...]:
        """A run's events with a sequence number above `after`, oldest first."""
        return self._read("run_id = ? AND seq > ?", (run_id, after))

    def events_after(self, seq: int) -> tuple[Recorded, ...]:
        """Every run's events with a sequence number above `seq`, oldest first."""
        return self._read("seq > ?", (seq,))

    def last_seq(self) -> int:
        """The highest sequence number so far; 0 without events."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM event").fetchone()[0])

    def events_of_kind(self, kind: str, since: str) -> tuple[Recorded, ...]:
        """Every run's events of a kind, from the ISO time `since` on."""
        return self._read("kind = ? AND at >= ?", (kind, since))

    def _read(self, where: str, values: tuple[str | int, ...]) -> tuple[Recorded, ...]:
        rows = self._db.execute(
            f"SELECT seq, at, run_id, dispatch_id, body FROM event WHERE {where} ORDER BY seq", values
        )
        return tuple(Recorded(seq, at, run_id, dispatch, parse_event(body)) for seq, at, run_id, dispatch, body in rows)

    def live_runs(self) -> tuple[str, ...]:
        """Runs that haven't ended, oldest first."""
        return self._ids("ended = 0 ORDER BY requested_seq", ())

    def runs(self, limit: int = 200) -> tuple[str, ...]:
        """The newest runs, newest first."""
        return self._ids("1 ORDER BY requested_seq DESC LIMIT ?", (limit,))

    def runs_with_key(self, run_key: str) -> tuple[str, ...]:
        """Runs of the same work, newest first."""
        return self._ids("run_key = ? ORDER BY requested_seq DESC", (run_key,))

    def runs_of_task(self, task: str) -> tuple[str, ...]:
        """Runs under a task, newest first."""
        return self._ids("task = ? ORDER BY requested_seq DESC", (task,))

    def runs_like(self, prefix: str) -> tuple[str, ...]:
        """Runs whose id starts with `prefix`."""
        escaped = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        return self._ids("run_id LIKE ? ESCAPE '\\' ORDER BY requested_seq", (escaped + "%",))

    def _ids(self, where: str, values: tuple[str | int, ...]) -> tuple[str, ...]:
        return tuple(row[0] for row in self._db.execute(f"SELECT run_id FROM run WHERE {where}", values))

    def data_version(self) -> int:
        """A number that changes when another connection commits; cheap enough to look at often."""
        return int(self._db.execute("PRAGMA data_version").fetchone()[0])
