"""Every write of the scheduler: a change of a state and its event together, made durable by `commit`."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from typing import Any, Optional

from ..attempt import Record
from ..state import Attempt
from .base import OVER, Row, read_row


class Book:
    """One connection, one transaction a turn. `moved` hears of every change of one job's state."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.counts: dict[int, Counter[str]] = {}
        """Jobs of each phase by state."""
        self.freed: list[int] = []
        """Jobs whose last need was met since someone last looked."""
        self._over: list[Row] = []
        self._telling = False

    def load(self, run: int) -> None:
        """Count a run's jobs anew."""
        for (phase,) in self.db.execute("select id from phase where run = ?", (run,)):
            self.counts[phase] = Counter(
                dict(self.db.execute("select state, count(*) from job where phase = ? group by state", (phase,)))
            )

    def begin(self) -> None:
        """Before any write."""
        if not self.db.in_transaction:
            self.db.execute("begin immediate")

    def commit(self) -> None:
        """Make all changes so far durable."""
        if self.db.in_transaction:
            self.db.execute("commit")

    def event(self, run: int, kind: str, state: str = "", text: str = "") -> None:
        """Something about a run as a whole."""
        self.begin()
        self.db.execute(
            "insert into event (at, run, kind, state, text) values (?, ?, ?, ?, ?)",
            (time.time(), run, kind, state, text),
        )

    def move(self, job: Row, state: str, reason: str = "", why: str = "", **columns: Any) -> None:
        """Change a job's state, tell it, and let those that need the job know."""
        self.begin()
        counts = self.counts[job.phase]
        counts[job.state] -= 1
        counts[state] += 1
        more = "".join(f", {name} = ?" for name in columns)
        self.db.execute(
            f"update job set state = ?, reason = ?, why = ?{more} where id = ?",
            (state, reason, why, *columns.values(), job.id),
        )
        self.db.execute(
            "insert into event (at, run, job, attempt, kind, state, reason, text) values (?, ?, ?, ?, 'job', ?, ?, ?)",
            (time.time(), job.run, job.id, job.attempts or None, state, reason, why[:500]),
        )
        job.state = state
        if state in OVER:
            self._tell(job)

    def note(self, job: int, why: str) -> None:
        """Why a job isn't running, without a change of its state."""
        self.begin()
        self.db.execute("update job set why = ? where id = ?", (why, job))

    def _tell(self, job: Row) -> None:
        """Let those that need a job know. Chains may be long, so this doesn't call itself."""
        self._over.append(job)
        if self._telling:
            return
        self._telling = True
        try:
            while self._over:
                self._tell_one(self._over.pop())
        finally:
            self._telling = False

    def _tell_one(self, job: Row) -> None:
        edges = self.db.execute('select rowid, job, "when" from edge where need_job = ? and met = 0', (job.id,))
        for rowid, other, when in edges.fetchall():
            self._decide(rowid, other, (when, met(when, job.state)), f"{job.name} {job.state}")
        counts = self.counts[job.phase]
        if sum(counts[state] for state in OVER) == sum(counts.values()):
            self._tell_phase(job.phase, counts)

    def _tell_phase(self, phase: int, counts: Counter[str]) -> None:
        whole = "succeeded" if counts["succeeded"] == sum(counts.values()) else "failed"
        name = self.db.execute("select name from phase where id = ?", (phase,)).fetchone()[0]
        edges = self.db.execute('select rowid, job, "when" from edge where need_phase = ? and met = 0', (phase,))
        for rowid, other, when in edges.fetchall():
            self._decide(rowid, other, (when, met(when, whole)), f"phase {name} {whole}")

    def _decide(self, edge: int, job: int, how: tuple[str, bool], text: str) -> None:
        when, fine = how
        choice = "run" if fine else "skip" if when == "failure" else self._choice(job)
        if choice == "hold":
            self.note(job, f"waits: {text}")
        elif choice == "skip":
            row = read_row(self.db, job)
            if row.state == "waiting":
                self.move(row, "skipped", "dep_failed", text)
        else:
            self.db.execute("update edge set met = 1 where rowid = ?", (edge,))
            self.db.execute("update job set needs = needs - 1, why = '' where id = ?", (job,))
            if self.db.execute("select needs from job where id = ? and state = 'waiting'", (job,)).fetchone() == (0,):
                self.freed.append(job)

    def _choice(self, job: int) -> str:
        return str(self.db.execute("select on_need_failed from job where id = ?", (job,)).fetchone()[0])

    def intend(self, job: str, nonce: str, slots: tuple[int, ...], gpus: int) -> Attempt:
        """The row of an attempt that is about to be made; commit before acting on it."""
        self.begin()
        last = self.db.execute("select max(n) from attempt where job = ?", (int(job),)).fetchone()[0]
        n = (last or 0) + 1
        cursor = self.db.execute(
            "insert into attempt (job, n, nonce, gpus, state) values (?, ?, ?, ?, 'open')", (int(job), n, nonce, gpus)
        )
        return Attempt(int(cursor.lastrowid or 0), job, n, nonce, slots)

    def lease(self, attempt: int, handles: tuple[str, ...], mib: Optional[int]) -> None:
        """The cards of an attempt, in the commit of its intent."""
        rows = [(attempt, handle, mib) for handle in handles]
        self.db.executemany("insert into gpu_lease values (?, ?, ?)", rows)
        self.db.execute("update attempt set handles = ? where id = ?", (",".join(handles), attempt))

    def leases(self) -> dict[int, list[tuple[str, Optional[int]]]]:
        """Cards held, by attempt."""
        found: dict[int, list[tuple[str, Optional[int]]]] = {}
        for attempt, handle, mib in self.db.execute("select attempt, handle, mib from gpu_lease"):
            found.setdefault(attempt, []).append((handle, mib))
        return found

    def close_attempt(self, attempt: Attempt, state: str, seconds: Optional[float] = None) -> None:
        """An attempt is over: `ended`, `lost` or `void`. Its cards are free."""
        self.begin()
        self.db.execute("update attempt set state = ?, seconds = ? where id = ?", (state, seconds, attempt.id))
        self.db.execute("delete from gpu_lease where attempt = ?", (attempt.id,))

    def judged(self, attempt: int, reason: str, verdict: Record, record: Record) -> None:
        """What came of an attempt."""
        kept = {key: record.get(key) for key in ("exit_code", "signal", "peak_rss_kib", "leftovers", "rusage")}
        self.begin()
        self.db.execute(
            "update attempt set reason = ?, verdict = ?, started = ?, ended = ? where id = ?",
            (reason, json.dumps({**verdict, **kept}), record.get("started"), record.get("ended"), attempt),
        )

    def open_attempts(self) -> list[Attempt]:
        """Those that are not known to be over."""
        rows = self.db.execute("select id, job, n, nonce from attempt where state = 'open' order by id")
        return [Attempt(row[0], str(row[1]), row[2], row[3], ()) for row in rows]

    def last_over(self, job: int) -> Optional[Attempt]:
        """The newest attempt of a job that ran and is over."""
        row = self.db.execute(
            "select id, job, n, nonce from attempt where job = ? and state in ('ended', 'lost')"
            " order by n desc limit 1",
            (job,),
        ).fetchone()
        return None if row is None else Attempt(row[0], str(row[1]), row[2], row[3], ())


def met(when: str, state: str) -> bool:
    """Whether a need is met by how the other one is."""
    if when == "success":
        return state == "succeeded"
    if when == "failure":
        return state in ("failed", "stuck")
    return state in OVER
