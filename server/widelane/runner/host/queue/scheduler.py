"""One scheduler: takes over what runs, and decides in each turn of the loop what starts next and on which cards."""

from __future__ import annotations

import time
from typing import Optional

from ..judge import present
from ..state import Attempt
from . import launch
from .base import Row, read_row
from .cardroom import Lack
from .cards import Want
from .desk import Desk, due_in
from .ending import conclude
from .ends import Ends
from .roll import Phase, Run
from .spec import Json
from .waves import Waves


class Scheduler:
    """`begin` once, then `turn` after every event; `turn` says when there is nothing left to wait for."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._ends = Ends(desk)
        self._waves = Waves(desk.book, desk.room, desk.guard, self._later)
        self._gate_why: dict[int, str] = {}
        desk.engine.on_start = self._started
        desk.engine.on_end = self._ends.ended
        desk.guard.on_open = self._opened
        desk.guard.on_shut = self._shut
        desk.room.on_count = self._counted

    def begin(self) -> None:
        """Take over what a former scheduler left."""
        desk = self._desk
        for (run,) in desk.book.db.execute("select id from run where state = 'running' order by id").fetchall():
            self.take(run)
        for attempt in desk.book.open_attempts():
            row = read_row(desk.book.db, int(attempt.job))
            if row.phase not in desk.roll.phases:
                desk.roll.load(row.run)
            self._count_in(row)
        if desk.book.leases():
            desk.room.count()
        desk.engine.resume()
        for row in list(desk.live.values()):
            if row.state == "starting":
                desk.book.move(row, "running")

    def take(self, number: int) -> None:
        """A run is to be run: it is new, was changed, or goes on after a stall."""
        desk = self._desk
        run = desk.roll.load(number)
        if run is None:
            return
        for row in desk.live.values():
            if row.phase in run.phases:
                self._add(row, 1)
        desk.book.begin()
        desk.book.db.execute("update run set started = ? where id = ? and started is null", (time.time(), number))
        marks = ",".join("?" * 3)
        for job, due, delay in desk.book.db.execute(
            f"select id, due, delay from job where run = ? and state in ({marks}) order by id",
            (number, "held", "cooling", "verifying"),
        ).fetchall():
            row = read_row(desk.book.db, job)
            if row.state == "held":
                desk.release(row)
            elif row.state == "cooling":
                desk.cool(row, due_in(due or 0.0, delay or 0.0))
            elif job not in desk.live:
                self._ends.again(row)

    def turn(self) -> bool:
        """Decide what is next; True when no run is active and nothing lives."""
        desk = self._desk
        desk.settle_freed()
        self._start_more()
        for run in desk.roll:
            if conclude(desk, run, self._gate_why.get(run.id, "")):
                desk.roll.drop(run.id)
        desk.engine.flush()
        return not desk.roll.runs and not desk.live

    def _later(self, seconds: float) -> None:
        self._desk.loop.after(seconds, lambda: None)

    def _count_in(self, row: Row) -> None:
        self._desk.live[row.id] = row
        self._add(row, 1)
        found = self._desk.book.db.execute("select reason from job where id = ?", (row.id,)).fetchone()
        if found[0] == "cancelled":
            self._desk.cancel(row)

    def _add(self, row: Row, one: int) -> None:
        run, phase = self._desk.roll.of(row)
        run.live += one
        phase.live += one
        run.cpu_live += one * int(not run.full(row.spec)["gpus"])

    def _started(self, attempt: Attempt) -> None:
        row = self._desk.live.get(int(attempt.job))
        if row is not None and row.state == "starting":
            self._desk.book.move(row, "running")

    def _opened(self, job: int) -> None:
        row = read_row(self._desk.book.db, job)
        if row.state == "held":
            self._desk.ready(row)

    def _shut(self, job: int, one: Json, why: str, expired: bool) -> None:
        desk = self._desk
        policy = one.get("on_unmet", "hold")
        if policy == "hold" and not expired:
            known = desk.book.db.execute("select why from job where id = ?", (job,)).fetchone()[0]
            if known != why:
                desk.book.note(job, why)
            return
        desk.guard.drop(job)
        row = read_row(desk.book.db, job)
        if row.state == "held":
            state = {"fail": "failed", "skip": "skipped"}.get(policy, "stuck")
            desk.book.move(row, state, "precondition_timeout", why)

    def _counted(self, gpus: int) -> None:
        self._desk.guard.gpus = gpus

    # starting

    def _start_more(self) -> None:
        self._gate_why.clear()
        reserved = False
        for first, key in self._desk.roll.heads():
            phase = self._desk.roll.phases[key[0]]
            job: Optional[int] = first
            while job is not None and not phase.full:
                row = self._desk.roll.known_head(key) or self._desk.roll.head(key, read_row(self._desk.book.db, job))
                done, holds_back = self._try(row, phase, reserved)
                reserved = reserved or holds_back
                if not done:
                    break
                job = self._desk.roll.pop(key)

    def _try(self, row: Row, phase: Phase, reserved: bool) -> tuple[bool, bool]:
        """Start a job when it may; (whether it is off the list, whether others must leave cards to it)."""
        run = phase.run
        why = self._waves.shut(phase, row.wave)
        if why:
            self._gate_why[run.id] = why
            return False, False
        job = launch.escalated(run.full(row.spec), row.tally.get("step", 0))
        want = Want.of(job)
        if want.gpus == 0:
            if self._cpu_room(run):
                self._launch(row, phase, job, (want, ()))
                return True, False
            return False, False
        if reserved:
            return False, False
        answer = self._desk.room.ask(want, run.gate)
        if isinstance(answer, Lack):
            return self._never(row, phase, answer), False
        if answer is None or not answer.cards:
            self._gate_why[run.id] = answer.why if answer else "the cards are being counted"
            return False, answer is not None and answer.busy and want.gpus > 1
        self._launch(row, phase, job, (want, answer.cards))
        return True, False

    def _cpu_room(self, run: Run) -> bool:
        return sum(other.cpu_live for other in self._desk.roll) < run.cpu_slots

    def _never(self, row: Row, phase: Phase, lack: Lack) -> bool:
        if lack.host:
            self._desk.pause(phase, f"env_broken: {lack.why}")
            return False
        self._desk.book.move(row, "stuck", "spawn_error", lack.why)
        return True

    def _launch(self, row: Row, phase: Phase, job: Json, cards: tuple[Want, tuple[str, ...]]) -> None:
        desk, run, (want, handles) = self._desk, phase.run, cards
        values = launch.values_of(run.spec, desk.root, row.attempts + 1, handles)
        reuse = job["if_exists"] == "skip" and row.attempts == 0
        if reuse and present(launch.folder(job, run.spec, values), launch.declared(job, values)):
            desk.book.move(row, "succeeded", "", "its outputs were there", cached=1)
            return
        attempt = desk.engine.start(str(row.id), (), len(handles), launch.request(job, run.spec, values))
        if handles:
            desk.book.lease(attempt.id, handles, want.mib)
            desk.room.take(attempt.id, handles, want.mib)
        row.attempts += 1
        desk.live[row.id] = row
        self._add(row, 1)
        run.blocked_since = None
        desk.book.move(row, "starting", "", "", attempts=row.attempts)
