"""After the end of an attempt: success, another launch, or the end of the job; and the breaker."""

from __future__ import annotations

import json
import random
import time
from typing import Any, Optional

from ..attempt import Record, Standing, read_record
from ..engine import Ending
from ..state import Attempt
from .base import Row
from .cards import Want
from .desk import Desk
from .enlist import shape
from .launch import escalated
from .retry import Failure, Next, decide
from .roll import Phase

_VOIDS = 8
_VOID_PAUSE = 0.1
_NOT_COUNTED = ("cancelled", "gpu_oom_contended", "lost")
"""Reasons that tell nothing of a phase."""


class Ends:
    """Hears of every end once."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._voids: dict[int, int] = {}

    def ended(self, ending: Ending) -> None:
        """The engine's word."""
        attempt, desk = ending.attempt, self._desk
        row = desk.live.pop(int(attempt.job), None) or desk.row(int(attempt.job))
        desk.room.give_back(attempt.id)
        run, phase = desk.roll.of(row)
        run.live -= 1
        phase.live -= 1
        run.cpu_live -= int(not run.full(row.spec)["gpus"])
        cancelled = row.id in desk.stopping
        desk.stopping.discard(row.id)
        if ending.standing is Standing.VOID:
            self._void(row, cancelled)
        elif ending.standing is Standing.LOST or ending.exit is None:
            text = (
                "its supervisor died"
                if ending.clear
                else "its supervisor died, and something it started can't be ended"
            )
            self._failed(
                row, attempt, {"reason": "cancelled" if cancelled else "lost", "detail": text}, {}, ending.clear
            )
        else:
            self._judged(row, attempt, ending.exit, cancelled)

    def again(self, row: Row) -> None:
        """A former scheduler died while it waited for a reading of the card."""
        attempt = self._desk.book.last_over(row.id)
        record = None if attempt is None else read_record(self._desk.engine.folder(attempt).exit)
        if attempt is None or record is None:
            self._desk.release(row)
        else:
            self._judged(row, attempt, record, cancelled=False)

    def _judged(self, row: Row, attempt: Attempt, record: Record, cancelled: bool) -> None:
        verdict: Record = record.get("verdict") or {"reason": "lost", "detail": "no verdict"}
        reason = verdict["reason"]
        if reason and record.get("stopped"):
            text = "someone cancelled it" if cancelled else "its supervisor was told to stop"
            verdict = {**verdict, "reason": "cancelled" if cancelled else "lost", "detail": text}
        if reason == "":
            self._desk.book.judged(attempt.id, "", verdict, record)
            self._desk.book.move(row, "succeeded", exit_code=record["exit_code"])
        elif verdict["reason"] == "gpu_oom":
            self._whose_memory(row, attempt, verdict, record)
        else:
            self._failed(row, attempt, verdict, record)

    def _whose_memory(self, row: Row, attempt: Attempt, verdict: Record, record: Record) -> None:
        """Out of memory on a card: did others hold it? By its own words, else by a reading now."""
        desk = self._desk
        run = desk.roll.of(row)[0]
        found = desk.book.db.execute("select handles from attempt where id = ?", (attempt.id,)).fetchone()[0]
        most = 500 if run.gate.free_mib is None else run.gate.free_mib

        def decided(others: int) -> None:
            if row.phase in desk.roll.phases:
                kind = "gpu_oom_contended" if others > most else "gpu_oom_self"
                text = f"{verdict['detail']} [others held {others} MiB]"
                self._failed(row, attempt, {**verdict, "reason": kind, "detail": text}, record)

        if verdict.get("others_mib") is not None or not found or desk.room.known is None:
            decided(int(verdict.get("others_mib") or 0))
            return
        desk.book.move(row, "verifying", "gpu_oom", "who held the card is being read")
        desk.room.others(tuple(found.split(",")), decided)

    def _failed(self, row: Row, attempt: Attempt, verdict: Record, record: Record, clear: bool = True) -> None:
        desk = self._desk
        reason = verdict["reason"]
        desk.book.judged(attempt.id, reason, verdict, record)
        code: Optional[int] = record.get("exit_code")
        if reason == "cancelled":
            desk.book.move(row, "cancelled", reason, verdict["detail"], exit_code=code)
            return
        run, phase = desk.roll.of(row)
        job = run.full(row.spec)
        step = decide(job, Failure(reason, code, row.attempts, row.tally), random.random())
        if not clear:
            step = Next("stuck", tally=step.tally)
        self._follow(row, (reason, code, verdict["detail"]), step)
        if not step.counted:
            desk.book.db.execute("update attempt set counted = 0 where id = ?", (attempt.id,))
        if reason not in _NOT_COUNTED:
            self._break(phase, row, verdict)

    def _follow(self, row: Row, how: tuple[str, Optional[int], str], step: Next) -> None:
        """Write what follows a failure."""
        desk, (reason, code, detail) = self._desk, how
        why = " - ".join(text for text in (detail, step.why) if text)
        row.tally = step.tally or row.tally
        columns: dict[str, Any] = {"exit_code": code, "tally": json.dumps(row.tally)}
        if step.state == "cooling":
            columns.update(due=time.time() + step.delay, delay=step.delay)
            if row.tally.get("step"):
                columns["shape"] = shape(escalated(desk.roll.of(row)[0].full(row.spec), row.tally["step"]))
        desk.book.move(row, step.state, reason, why, **columns)
        if step.state == "cooling":
            desk.cool(row, step.delay)

    def _void(self, row: Row, cancelled: bool) -> None:
        """It never ran: no attempt is spent. A host where nothing ever starts must not go on for ever."""
        desk = self._desk
        row.attempts -= 1
        count = self._voids[row.id] = self._voids.get(row.id, 0) + 1
        if cancelled:
            desk.book.move(row, "cancelled", "cancelled", "someone cancelled it", attempts=row.attempts)
        elif count >= _VOIDS:
            text = "the supervisor never started; see supervisors.log"
            desk.book.move(row, "stuck", "spawn_error", text, attempts=row.attempts)
        else:
            pause = _VOID_PAUSE * 2 ** (count - 1) if count > 1 else 0.0
            columns = {"attempts": row.attempts, "due": time.time() + pause, "delay": pause}
            desk.book.move(row, "cooling", "", "it hadn't started yet", **columns)
            desk.cool(row, pause)

    def _break(self, phase: Phase, row: Row, verdict: Record) -> None:
        """The same failure of several jobs in a short time: the phase is paused, the rest goes on."""
        rule = phase.spec.get("breaker") or phase.run.spec["breaker"]
        signature = verdict.get("signature") or f"{verdict['reason']}: {verdict['detail']}"
        if not rule or phase.paused:
            return
        now = time.monotonic()
        phase.failures.append((now, signature, row.id))
        while phase.failures and now - phase.failures[0][0] >= rule["seconds"]:
            phase.failures.popleft()
        alike = {job for _, other, job in phase.failures if other == signature}
        if len(alike) >= rule["failures"]:
            phase.failures.clear()
            kind = "env_broken" if verdict.get("env_broken") or verdict["reason"] == "env_broken" else "breaker"
            self._desk.pause(phase, f"{kind}: {len(alike)} jobs failed alike within {rule['seconds']} s: {signature}")


def want_of(row: Row, job: dict[str, object]) -> Want:
    """What a job asks of cards after the steps it has taken."""
    return Want.of(escalated(job, row.tally.get("step", 0)))
