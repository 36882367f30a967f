"""A new run becomes rows. It is in state `loading` until it is whole, and no scheduler looks at it before."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Generator, Iterable
from typing import Any

from .spec import Json, digest, full

_CHUNK = 2000


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Generator[None, None, None]:
    """All of the block or nothing."""
    db.execute("begin immediate")
    try:
        yield
    except BaseException:
        db.execute("rollback")
        raise
    db.execute("commit")


def digest_of(spec: Json) -> str:
    """The same for the same run."""
    told = {key: value for key, value in spec.items() if key not in ("accept", "manifest")}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def enlist(db: sqlite3.Connection, spec: Json) -> int:
    """Write a run that isn't there, or was left half written; returns its number. In pieces: others write too."""
    with transaction(db):
        _forget(db, spec["run_id"])
        run = _insert_run(db, spec)
        phases = insert_phases(db, run, spec["phases"])
    numbers: dict[str, int] = {}
    members = Members(spec)
    for start in range(0, len(spec["jobs"]), _CHUNK):
        with transaction(db):
            for job in spec["jobs"][start : start + _CHUNK]:
                numbers[job["id"]] = insert_job(db, (run, phases[job["phase"]]), spec, job, members)
    known = Known(numbers, phases, members.empty())
    for start in range(0, len(spec["jobs"]), _CHUNK):
        with transaction(db):
            insert_edges(db, spec, spec["jobs"][start : start + _CHUNK], known)
    with transaction(db):
        db.execute("update run set state = 'running' where id = ?", (run,))
        db.execute(
            "insert into event (at, run, kind, state, text) values (?, ?, 'run', 'running', ?)",
            (time.time(), run, f"{len(spec['jobs'])} jobs"),
        )
    return run


def _forget(db: sqlite3.Connection, name: str) -> None:
    row = db.execute("select id from run where name = ? and state = 'loading'", (name,)).fetchone()
    if row is not None:
        db.execute("delete from edge where job in (select id from job where run = ?)", row)
        for table in ("job", "phase"):
            db.execute(f"delete from {table} where run = ?", row)
        db.execute("delete from run where id = ?", row)


def head(spec: Json) -> str:
    """What the run's row keeps: everything but the jobs, which have rows of their own."""
    return json.dumps({key: value for key, value in spec.items() if key not in ("jobs", "accept")})


def _insert_run(db: sqlite3.Connection, spec: Json) -> int:
    cursor = db.execute(
        "insert into run (name, project, state, spec, digest, created) values (?, ?, 'loading', ?, ?, ?)",
        (spec["run_id"], spec["project"], head(spec), digest_of(spec), time.time()),
    )
    return int(cursor.lastrowid or 0)


def insert_phases(db: sqlite3.Connection, run: int, phases: Iterable[Json]) -> dict[str, int]:
    """Numbers of the phases by name; one that is there gets the new settings."""
    for phase in phases:
        db.execute(
            "insert into phase (run, name, spec) values (?, ?, ?)"
            " on conflict (run, name) do update set spec = excluded.spec",
            (run, phase["name"], json.dumps(phase)),
        )
    return dict(db.execute("select name, id from phase where run = ?", (run,)))


def insert_job(db: sqlite3.Connection, place: tuple[int, int], spec: Json, job: Json, members: Members) -> int:
    """A job's row."""
    whole = full(spec, job)
    wave = members.take(job["phase"])
    guarded = whole["preconditions"] or members.guarded[job["phase"]]
    needs = whole["needs"]
    cursor = db.execute(
        "insert into job (run, phase, name, wave, state, digest, shape, on_need_failed, needs, spec)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *place,
            job["id"],
            wave,
            "waiting" if needs else "held" if guarded else "ready",
            digest(job, spec.get("defaults", {})),
            shape(whole),
            whole["on_need_failed"],
            len(needs),
            json.dumps(job),
        ),
    )
    return int(cursor.lastrowid or 0)


def shape(job: Json) -> str:
    """What a job asks of cards: those of one shape start in their order."""
    asked = [job["gpus"], job["gpu_mem_mib"], bool(job["exclusive"]), job["gpu_select"]]
    return json.dumps(asked, sort_keys=True)


class Members:
    """Counts the jobs of each phase, and says in which wave the next one is."""

    def __init__(self, spec: Json) -> None:
        self.guarded = {one["name"]: bool(spec["preconditions"] or one.get("preconditions")) for one in spec["phases"]}
        self._waves: dict[str, Any] = {one["name"]: one.get("wave") or spec["wave"] or {} for one in spec["phases"]}
        self._counts = dict.fromkeys(self._waves, 0)

    def take(self, phase: str) -> int:
        """The wave of the next job of a phase; 0 where waves have no barrier."""
        count = self._counts[phase]
        self._counts[phase] = count + 1
        wave = self._waves[phase]
        return int(count // wave["size"]) if wave.get("barrier") else 0

    def empty(self) -> set[str]:
        """Phases without a job."""
        return {name for name, count in self._counts.items() if count == 0}


class Known:
    """Numbers of jobs and phases by name, and which phases have no job."""

    def __init__(self, jobs: dict[str, int], phases: dict[str, int], empty: set[str]) -> None:
        self.jobs = jobs
        self.phases = phases
        self.empty = empty


def insert_edges(db: sqlite3.Connection, spec: Json, jobs: Iterable[Json], known: Known) -> None:
    """The needs of jobs. A phase without jobs is no need."""
    for job in jobs:
        number = known.jobs[job["id"]]
        gone = 0
        for need in full(spec, job)["needs"]:
            if need.get("phase") in known.empty:
                gone += 1
                continue
            row = (number, known.jobs.get(need.get("job", "")), known.phases.get(need.get("phase", "")))
            db.execute(
                'insert into edge (job, need_job, need_phase, "when") values (?, ?, ?, ?)',
                (*row, need.get("when", "success")),
            )
        if gone:
            state = "case when needs = ? then 'held' else state end"
            db.execute(f"update job set needs = needs - ?, state = {state} where id = ?", (gone, gone, number))
