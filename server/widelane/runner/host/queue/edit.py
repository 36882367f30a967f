"""A run handed in again: what is different, and the change of a run that is there."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Optional

from .base import OVER
from .enlist import Known, Members, digest_of, head, insert_edges, insert_job, insert_phases, shape
from .spec import Json, digest, full


def difference(db: sqlite3.Connection, run: int, spec: Json) -> dict[str, Any]:
    """Ids of jobs that are added, removed and changed, and how many are the same."""
    known = dict(db.execute("select name, digest from job where run = ?", (run,)))
    new = {job["id"]: digest(job, spec.get("defaults", {})) for job in spec["jobs"]}
    return {
        "added": [name for name in new if name not in known],
        "removed": [name for name in known if name not in new],
        "changed": [name for name in new if name in known and new[name] != known[name]],
        "same": sum(1 for name in new if new[name] == known.get(name)),
    }


def refused(diff: dict[str, Any], accept: Json) -> bool:
    """Whether the difference has something that must be asked for."""
    return any(diff[kind] and not accept.get(kind) for kind in ("changed", "removed"))


def apply(db: sqlite3.Connection, run: int, spec: Json, diff: dict[str, Any]) -> None:
    """Write what is new and changed, in the caller's transaction. Nothing of it may be live."""
    phases = insert_phases(db, run, spec["phases"])
    db.execute(
        "update run set spec = ?, digest = ?, project = ? where id = ?",
        (head(spec), digest_of(spec), spec["project"], run),
    )
    members = Members(spec)
    numbers: dict[str, int] = dict(db.execute("select name, id from job where run = ?", (run,)))
    added, changed = set(diff["added"]), set(diff["changed"])
    for job in spec["jobs"]:
        if job["id"] in added:
            numbers[job["id"]] = insert_job(db, (run, phases[job["phase"]]), spec, job, members)
        else:
            wave = members.take(job["phase"])
            db.execute("update job set wave = ? where id = ?", (wave, numbers[job["id"]]))
    known = Known(numbers, phases, members.empty())
    touched = [job for job in spec["jobs"] if job["id"] in added or job["id"] in changed]
    for job in touched:
        if job["id"] in changed:
            _renew(db, (numbers[job["id"]], phases[job["phase"]]), spec, job)
    insert_edges(db, spec, touched, known)
    for job in touched:
        _meet(db, numbers[job["id"]])


def _renew(db: sqlite3.Connection, place: tuple[int, int], spec: Json, job: Json) -> None:
    """A changed job is as if it had never run; its attempts stay on record."""
    whole, (number, phase) = full(spec, job), place
    db.execute("delete from edge where job = ?", (number,))
    db.execute(
        "update job set phase = ?, state = 'waiting', reason = '', why = '', digest = ?, shape = ?, on_need_failed = ?,"
        " needs = ?, exit_code = null, tally = '{}', cached = 0, spec = ? where id = ?",
        (
            phase,
            digest(job, spec.get("defaults", {})),
            shape(whole),
            whole["on_need_failed"],
            len(whole["needs"]),
            json.dumps(job),
            number,
        ),
    )


def _meet(db: sqlite3.Connection, number: int) -> None:
    """Needs that are met already; a job that is left with none is held until it is looked at."""
    edges = db.execute(
        'select rowid, need_job, need_phase, "when" from edge where job = ? and met = 0', (number,)
    ).fetchall()
    for rowid, job, phase, when in edges:
        if _is_met(db, job, phase, when):
            db.execute("update edge set met = 1 where rowid = ?", (rowid,))
            db.execute("update job set needs = needs - 1 where id = ?", (number,))
    db.execute("update job set state = 'held' where id = ? and needs = 0 and state = 'waiting'", (number,))


def _is_met(db: sqlite3.Connection, job: Optional[int], phase: int, when: str) -> bool:
    where, value = ("id", job) if job is not None else ("phase", phase)
    states = [row[0] for row in db.execute(f"select distinct state from job where {where} = ?", (value,))]
    if when == "success":
        return states == ["succeeded"]
    over = bool(states) and all(state in OVER for state in states)
    return over and (when == "finished" or any(state in ("failed", "stuck") for state in states))
