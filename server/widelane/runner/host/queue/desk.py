"""What the parts of the scheduler share: the book, the runs, and how a job changes hands between them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from ..engine import Engine
from ..loop import Loop
from .base import Row, read_row
from .book import Book
from .cardroom import CardRoom
from .guard import Guard
from .roll import Phase, Roll


@dataclass
class Desk:
    """One scheduler's things. `live` are the jobs that have an open attempt, by number."""

    root: Path
    loop: Loop
    book: Book
    engine: Engine
    roll: Roll
    room: CardRoom
    guard: Guard
    live: dict[int, Row] = field(default_factory=dict[int, Row])
    stopping: set[int] = field(default_factory=set[int])
    """Live jobs that someone cancelled."""

    def row(self, job: int) -> Row:
        """A job as it is now."""
        return self.live.get(job) or read_row(self.book.db, job)

    def release(self, row: Row) -> None:
        """A job of which nothing but preconditions may be open: held, or ready."""
        run, phase = self.roll.of(row)
        job = run.full(row.spec)
        wanted = [*phase.preconditions, *job["preconditions"]]
        if not wanted:
            self.ready(row)
            return
        if row.state != "held":
            self.book.move(row, "held", "", "its preconditions are being looked at")
        self.guard.hold(row.id, wanted, run.spec["cwd"])

    def ready(self, row: Row) -> None:
        """A job may start when there is room."""
        self.book.move(row, "ready")
        self.roll.push(row, self.shape(row))

    def shape(self, row: Row) -> str:
        """What a job asks of cards, as the database has it."""
        return str(self.book.db.execute("select shape from job where id = ?", (row.id,)).fetchone()[0])

    def settle_freed(self) -> None:
        """Let go of jobs whose last need was met."""
        while self.book.freed:
            row = read_row(self.book.db, self.book.freed.pop())
            if row.state == "waiting" and row.needs == 0:
                self.release(row)

    def cool(self, row: Row, seconds: float) -> None:
        """Have a cooling job go on then."""

        def warm() -> None:
            if row.phase not in self.roll.phases:
                return
            now = read_row(self.book.db, row.id)
            if now.state == "cooling":
                self.release(now)

        self.loop.after(seconds, warm)

    def pause(self, phase: Phase, why: str) -> None:
        """Start nothing more of a phase."""
        phase.paused = why
        self.book.begin()
        self.book.db.execute("update phase set paused = ? where id = ?", (why, phase.id))
        self.book.event(phase.run.id, "phase", "paused", f"{phase.name}: {why}")

    def cancel(self, row: Row) -> bool:
        """End a job; False when it is over already."""
        if row.id in self.live:
            self.stopping.add(row.id)
            self.book.begin()
            self.book.db.execute("update job set reason = 'cancelled', why = 'is being ended' where id = ?", (row.id,))
            for attempt in self.engine.live():
                if int(attempt.job) == row.id:
                    self.engine.stop(attempt)
            return True
        if row.state in ("waiting", "held", "ready", "cooling", "verifying"):
            self.guard.drop(row.id)
            self.book.move(row, "cancelled", "cancelled", "someone cancelled it")
            return True
        return False


def due_in(due: float, delay: float) -> float:
    """Seconds that are left of a pause, never more than the pause: wall clocks jump."""
    return min(max(0.0, due - time.time()), delay)
