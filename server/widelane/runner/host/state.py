"""What the scheduler must remember: jobs and attempts, in SQLite.

WAL with synchronous=NORMAL: a commit survives any death of a process, which is what adoption needs. A power cut
may take the last commits back, but it also ends every process; then the synced records in the attempt folders and
the store decide, and no folder is used twice because making it fails when it is there.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

_SCHEMA = """
create table if not exists meta (key text primary key, value text not null) without rowid;
create table if not exists job (
    name text primary key,          -- "setup", a unit's index, "merge"
    state text not null,            -- ready verifying succeeded failed cancelled
    reason text not null default '',
    losses integer not null default 0,
    cached integer not null default 0
) without rowid;
create table if not exists attempt (
    id integer primary key,
    job text not null,
    n integer not null,
    nonce text not null,
    slots text not null,            -- JSON list of slot numbers
    gpus integer not null,
    state text not null,            -- open ended void lost
    seconds real,
    unique (job, n)
);
create index if not exists attempt_open on attempt (state) where state = 'open';
"""


@dataclass
class Job:
    """One thing to run."""

    name: str
    state: str = "ready"
    reason: str = ""
    losses: int = 0
    cached: bool = False


@dataclass
class Attempt:
    """One try of a job. `slots` are the numbers of the slots it holds."""

    id: int
    job: str
    n: int
    nonce: str
    slots: tuple[int, ...]

    @property
    def name(self) -> str:
        """Its folder's name."""
        return f"{self.job}-{self.n}"


class State:
    """Jobs and attempts. Changes become durable at `commit`."""

    def __init__(self, path: Path) -> None:
        """Open or make the database. Raises sqlite3.Error."""
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("pragma synchronous=normal")
        self._db.executescript(_SCHEMA)

    def meta(self, key: str) -> Any:
        """A remembered value, or None."""
        row = self._db.execute("select value from meta where key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def set_meta(self, key: str, value: Any) -> None:
        """Remember a value."""
        self._begin()
        self._db.execute("insert or replace into meta values (?, ?)", (key, json.dumps(value)))

    def jobs(self) -> dict[str, Job]:
        """All of them by name."""
        rows = self._db.execute("select name, state, reason, losses, cached from job")
        return {row[0]: Job(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows}

    def save(self, job: Job) -> None:
        """Write a job's row."""
        self._begin()
        self._db.execute(
            "insert or replace into job values (?, ?, ?, ?, ?)",
            (job.name, job.state, job.reason, job.losses, int(job.cached)),
        )

    def intend(self, job: str, nonce: str, slots: tuple[int, ...], gpus: int) -> Attempt:
        """The row of an attempt that is about to be made; commit before acting on it."""
        self._begin()
        last = self._db.execute("select max(n) from attempt where job = ?", (job,)).fetchone()[0]
        n = (last or 0) + 1
        cursor = self._db.execute(
            "insert into attempt (job, n, nonce, slots, gpus, state) values (?, ?, ?, ?, ?, 'open')",
            (job, n, nonce, json.dumps(slots), gpus),
        )
        return Attempt(int(cursor.lastrowid or 0), job, n, nonce, slots)

    def close_attempt(self, attempt: Attempt, state: str, seconds: Optional[float] = None) -> None:
        """An attempt is over: `ended`, `lost` or `void`."""
        self._begin()
        self._db.execute("update attempt set state = ?, seconds = ? where id = ?", (state, seconds, attempt.id))

    def open_attempts(self) -> list[Attempt]:
        """Those that are not known to be over."""
        return self._attempts("where state = 'open' order by id", ())

    def last_over(self, job: str) -> Optional[Attempt]:
        """The newest attempt of a job that ran and is over."""
        found = self._attempts("where job = ? and state in ('ended', 'lost') order by n desc limit 1", (job,))
        return found[0] if found else None

    def busy_seconds(self) -> float:
        """GPU-seconds used by attempts that are over."""
        return float(self._db.execute("select sum(seconds * gpus) from attempt").fetchone()[0] or 0.0)

    def commit(self) -> None:
        """Make all changes so far durable against the death of this process."""
        if self._db.in_transaction:
            self._db.execute("commit")

    def close(self) -> None:
        """Close; what isn't committed is forgotten."""
        self._db.close()

    def _attempts(self, where: str, values: tuple[Any, ...]) -> list[Attempt]:
        rows = self._db.execute(f"select id, job, n, nonce, slots from attempt {where}", values)
        return [Attempt(row[0], row[1], row[2], row[3], tuple(json.loads(row[4]))) for row in rows]

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("begin immediate")
