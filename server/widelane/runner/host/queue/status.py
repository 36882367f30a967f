"""What a queue's database says to those who only read. No scheduler is needed for it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, Optional

from ..attempt import locked
from . import base
from .spec import QueueError

Json = dict[str, Any]
_PID = re.compile(r"pid (\d+)")


@contextlib.contextmanager
def reading(root: Path) -> Generator[sqlite3.Connection, None, None]:
    """The database of a root folder, at one instant. Raises `QueueError` where there is none."""
    db = base.connect_to_read(root)
    if db is None:
        raise QueueError("no_run", f"no queue in {root}")
    try:
        db.execute("begin")
        yield db
    finally:
        db.close()


def run_row(db: sqlite3.Connection, run_id: str) -> Optional[tuple[Any, ...]]:
    """id, name, project, state, paused, created, started, ended, blocks; None where there is no such run."""
    columns = "id, name, project, state, paused, created, started, ended, blocks"
    row: Optional[tuple[Any, ...]] = db.execute(f"select {columns} from run where name = ?", (run_id,)).fetchone()
    return row


def _need(db: sqlite3.Connection, run_id: str) -> tuple[Any, ...]:
    row = run_row(db, run_id)
    if row is None:
        raise QueueError("no_run", f"no run {run_id!r}")
    return row


def runs(root: Path) -> list[Json]:
    """All runs, the newest first."""
    if not base.path(root).exists():
        return []
    with reading(root) as db:
        counts: dict[int, dict[str, int]] = {}
        for run, state, count in db.execute("select run, state, count(*) from job group by run, state"):
            counts.setdefault(run, {})[state] = count
        rows = db.execute("select id, name, project, state, created from run order by id desc").fetchall()
    return [
        {"run_id": row[1], "project": row[2], "state": row[3], "created": row[4], "counts": counts.get(row[0], {})}
        for row in rows
    ]


def status(root: Path, run_id: str, jobs: bool = True) -> Json:
    """How a run stands; with `jobs` a row for each. Raises `QueueError` for one that isn't there."""
    with reading(root) as db:
        run = _need(db, run_id)
        phases, counts = _phases(db, run[0])
        seq = db.execute("select max(seq) from event where run = ?", (run[0],)).fetchone()[0] or 0
        listed = _jobs(db, run[0]) if jobs else None
    found: Json = {
        "run_id": run[1],
        "project": run[2],
        "state": run[3],
        "paused": bool(run[4]),
        "created": run[5],
        "started": run[6],
        "ended": run[7],
        "seq": seq,
        "counts": dict(counts),
        "total": sum(counts.values()),
        "scheduler": scheduler(root),
        "blocks": json.loads(run[8]),
        "gate": _gate(root),
        "phases": phases,
    }
    if listed is not None:
        found["jobs"] = listed
    return found


def scheduler(root: Path) -> Json:
    """Whether one lives, and its pid."""
    try:
        with locked(root / "lock") as held:
            if held is not None:
                return {"alive": False, "pid": None}
        match = _PID.match((root / "lock").read_text(errors="replace"))
    except OSError:
        return {"alive": False, "pid": None}
    return {"alive": True, "pid": int(match.group(1)) if match else None}


def _gate(root: Path) -> list[Json]:
    """What the scheduler last said of the cards."""
    try:
        found: list[Json] = json.loads((root / "gate.json").read_bytes())
    except (OSError, ValueError):
        return []
    return found


def _phases(db: sqlite3.Connection, run: int) -> tuple[list[Json], Counter[str]]:
    total: Counter[str] = Counter()
    by_phase: dict[int, Counter[str]] = {}
    rows = db.execute("select phase, state, count(*) from job where run = ? group by phase, state", (run,))
    for phase, state, count in rows:
        by_phase.setdefault(phase, Counter())[state] = count
        total[state] += count
    listed = [
        {
            "name": name,
            "state": _phase_state(by_phase.get(number, Counter()), paused),
            "paused": paused,
            "counts": dict(by_phase.get(number, {})),
        }
        for number, name, paused in db.execute("select id, name, paused from phase where run = ? order by id", (run,))
    ]
    return listed, total


def _phase_state(counts: Counter[str], paused: str) -> str:
    left = sum(counts.values()) - sum(counts[state] for state in base.OVER)
    if left == 0:
        return "succeeded" if counts["succeeded"] == sum(counts.values()) else "failed"
    if paused:
        return "paused"
    begun = sum(counts.values()) - counts["waiting"] - counts["held"] - counts["ready"]
    return "running" if begun else "waiting"


_WHYS = {
    "ready": "waits for a slot or a card",
    "starting": "is being started",
    "cooling": "waits before it is tried again",
    "held": "waits for a precondition",
}


def _why(state: str, reason: str, needs: int) -> str:
    if state in ("running", "succeeded"):
        return ""
    return f"waits for {needs} others" if state == "waiting" else _WHYS.get(state, reason)


def _jobs(db: sqlite3.Connection, run: int) -> list[Json]:
    names = dict(db.execute("select id, name from phase where run = ?", (run,)))
    handles = dict(
        db.execute(
            "select job, handles from attempt where state = 'open' and job in (select id from job where run = ?)",
            (run,),
        )
    )
    rows = db.execute(
        "select id, name, phase, state, reason, why, attempts, exit_code, needs, due, wave from job"
        " where run = ? order by id",
        (run,),
    )
    found: list[Json] = []
    for place, (number, name, phase, state, reason, why, attempts, code, needs, due, wave) in enumerate(rows):
        found.append(
            {
                "id": name,
                "index": place,
                "phase": names[phase],
                "state": state,
                "reason": reason,
                "why": why if why and state != "running" else _why(state, reason, needs),
                "attempts": attempts,
                "exit_code": code,
                "gpus": handles[number].split(",") if handles.get(number) else [],
                "needs_left": needs,
                "due": due if state == "cooling" else None,
                "wave": wave,
            }
        )
    return found


def events(root: Path, run_id: str, since: int = 0, limit: int = 1000) -> list[Json]:
    """What happened after event `since`, in its order."""
    keys = ("seq", "at", "kind", "state", "reason", "text", "attempt", "job")
    with reading(root) as db:
        run = _need(db, run_id)
        rows = db.execute(
            "select event.seq, event.at, event.kind, event.state, event.reason, event.text, event.attempt, job.name"
            " from event left join job on job.id = event.job where event.run = ? and seq > ? order by seq limit ?",
            (run[0], since, limit),
        ).fetchall()
    return [{**dict(zip(keys, row)), "run_id": run_id} for row in rows]


def attempts(root: Path, run_id: str, job: Optional[str] = None) -> list[Json]:
    """Every launch of a job, or of all, in the order of the launches."""
    with reading(root) as db:
        run = _need(db, run_id)
        more, values = ("", [run[0]]) if job is None else (" and job.name = ?", [run[0], job])
        rows = db.execute(
            "select job.name, job.id, n, attempt.state, attempt.reason, handles, started, ended, seconds, counted,"
            f" verdict, gpus from attempt join job on job.id = attempt.job where job.run = ?{more} order by attempt.id",
            values,
        ).fetchall()
    return [_attempt(root, row) for row in rows]


def _attempt(root: Path, row: tuple[Any, ...]) -> Json:
    name, number, n, state, reason, handles, started, ended, seconds, counted, verdict, gpus = row
    found = json.loads(verdict)
    return {
        "job": name,
        "n": n,
        "state": state,
        "reason": reason,
        "exit_code": found.get("exit_code"),
        "signal": found.get("signal"),
        "gpus": handles.split(",") if handles else [],
        "gpu_count": gpus,
        "started": started,
        "ended": ended,
        "seconds": seconds,
        "log": os.fspath(root / "attempts" / f"{number}-{n}" / "log"),
        "peak_rss_kib": found.get("peak_rss_kib"),
        "detail": found.get("detail", ""),
        "signature": found.get("signature", ""),
        "outputs": found.get("outputs", found.get("partial", [])),
        "leftovers": found.get("leftovers"),
        "counted": bool(counted),
    }


def log_path(root: Path, run_id: str, job: str, n: Optional[int] = None) -> Path:
    """The log of an attempt, without `n` of the newest. Raises `QueueError` for a job that never ran."""
    with reading(root) as db:
        run = _need(db, run_id)
        row = db.execute(
            "select job.id, max(n) from job left join attempt on attempt.job = job.id and (? is null or n = ?)"
            " where run = ? and name = ? group by job.id",
            (n, n, run[0], job),
        ).fetchone()
    if row is None:
        raise QueueError("no_job", f"no job {job!r}")
    if row[1] is None:
        raise QueueError("no_log", f"{job!r} hasn't run" + ("" if n is None else f" a time number {n}"))
    return root / "attempts" / f"{row[0]}-{row[1]}" / "log"


def spec(root: Path, run_id: str) -> Json:
    """The run as it was handed in."""
    with reading(root) as db:
        run = _need(db, run_id)
        head = db.execute("select spec from run where id = ?", (run[0],)).fetchone()[0]
        jobs = [json.loads(row[0]) for row in db.execute("select spec from job where run = ? order by id", (run[0],))]
    return {**json.loads(head), "jobs": jobs}


def settled(found: Json, until: str, since: int) -> bool:
    """Whether what someone waits for is there."""
    if found["state"] not in ("running", "loading"):
        return True
    if until == "change":
        return bool(found["seq"] > since)
    return until == "stuck" and bool(found["counts"].get("stuck"))
