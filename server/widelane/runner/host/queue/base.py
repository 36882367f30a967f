"""The queue's database: its tables, how it is opened, and what of a row is kept in memory."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

OVER = ("succeeded", "failed", "stuck", "skipped", "cancelled")
LIVE = ("starting", "running", "verifying")
ENDED = ("done", "done_with_failures", "stalled", "cancelled")

_SCHEMA = """
create table if not exists run (
    id integer primary key, name text not null unique, project text not null, state text not null,
    paused integer not null default 0, spec text not null, digest text not null,
    created real not null, started real, ended real, blocks text not null default '[]'
);
create table if not exists phase (
    id integer primary key, run integer not null, name text not null, spec text not null,
    paused text not null default '', wave integer not null default 0, unique (run, name)
);
create table if not exists job (
    id integer primary key, run integer not null, phase integer not null, name text not null, wave integer not null,
    state text not null, reason text not null default '', why text not null default '', digest text not null,
    shape text not null, on_need_failed text not null, needs integer not null default 0,
    attempts integer not null default 0, exit_code integer,
    tally text not null default '{}', due real, delay real, cached integer not null default 0, spec text not null,
    unique (run, name)
);
create index if not exists job_ready on job (state, id) where state in
    ('held', 'ready', 'starting', 'running', 'verifying', 'cooling');
create index if not exists job_phase on job (phase, state);
create index if not exists job_wave on job (phase, wave) where state not in
    ('succeeded', 'failed', 'stuck', 'skipped', 'cancelled');
create table if not exists edge (
    job integer not null, need_job integer, need_phase integer, "when" text not null, met integer not null default 0
);
create index if not exists edge_job on edge (job);
create index if not exists edge_need on edge (need_job) where need_job is not null;
create index if not exists edge_phase on edge (need_phase) where need_phase is not null;
create table if not exists attempt (
    id integer primary key, job integer not null, n integer not null, nonce text not null, gpus integer not null,
    state text not null, handles text not null default '', started real, ended real, seconds real,
    reason text not null default '', counted integer not null default 1, verdict text not null default '{}',
    unique (job, n)
);
create index if not exists attempt_open on attempt (state) where state = 'open';
create index if not exists attempt_nonce on attempt (nonce);
create table if not exists gpu_lease (
    attempt integer not null, handle text not null, mib integer, primary key (attempt, handle)
) without rowid;
create table if not exists event (
    seq integer primary key autoincrement, at real not null, run integer not null, job integer, attempt integer,
    kind text not null, state text not null default '', reason text not null default '', text text not null default ''
);
create index if not exists event_run on event (run, seq);
create table if not exists command (
    id integer primary key autoincrement, at real not null, body text not null, answer text
);
create index if not exists command_open on command (id) where answer is null;
"""


def path(root: Path) -> Path:
    """Where the database of a root folder is."""
    return root / "queue.db"


def connect(root: Path) -> sqlite3.Connection:
    """Open for writing, make it where there is none. Raises sqlite3.Error."""
    db = sqlite3.connect(path(root), isolation_level=None, timeout=30.0, check_same_thread=False)
    db.execute("pragma journal_mode=wal")
    db.execute("pragma synchronous=full")
    if db.execute("pragma user_version").fetchone()[0] == 0:
        db.executescript(f"begin immediate; {_SCHEMA} pragma user_version=1; commit;")
    return db


def connect_to_read(root: Path) -> Optional[sqlite3.Connection]:
    """Open for reading; None where there is no queue yet."""
    if not path(root).exists():
        return None
    db = sqlite3.connect(path(root), isolation_level=None, timeout=30.0)
    db.execute("pragma query_only=1")
    if db.execute("pragma user_version").fetchone()[0] == 0:
        db.close()
        return None
    return db


@dataclass
class Row:
    """A job that something is decided about now. `tally` counts its failures by class."""

    id: int
    run: int
    phase: int
    name: str
    state: str
    needs: int
    attempts: int
    tally: dict[str, int]
    spec: dict[str, Any]
    wave: int


def read_row(db: sqlite3.Connection, job: int) -> Row:
    """A job by its number."""
    found = db.execute(
        "select id, run, phase, name, state, needs, attempts, tally, spec, wave from job where id = ?", (job,)
    ).fetchone()
    number, run, phase, name, state, needs, attempts, tally, spec, wave = found
    return Row(number, run, phase, name, state, needs, attempts, json.loads(tally), json.loads(spec), wave)
