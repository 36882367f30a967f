"""The barrier between two waves of a phase. It opens only when four things hold, and each alone keeps it shut."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from typing import Callable, Optional

from .. import processes
from .base import OVER
from .book import Book
from .cardroom import CardRoom
from .guard import Guard
from .roll import Phase

_LOOK_AGAIN = 0.2
_MARKS = ",".join("?" * len(OVER))


@dataclass(frozen=True)
class Barrier:
    """Why each of the four doesn't hold; "" where it does."""

    running: str = ""
    left_over: str = ""
    memory: str = ""
    precondition: str = ""

    @property
    def why(self) -> str:
        """Everything that keeps it shut; "" when it is open."""
        return "; ".join(why for why in (self.running, self.left_over, self.memory, self.precondition) if why)


class Waves:
    """Looks at barriers for the scheduler; `later(seconds)` asks for another turn."""

    def __init__(self, book: Book, room: CardRoom, guard: Guard, later: Callable[[float], None]) -> None:
        self._book = book
        self._room = room
        self._guard = guard
        self._later = later
        self._since: dict[int, float] = {}

    def shut(self, phase: Phase, wave: int) -> str:
        """Why a job of `wave` may not start yet; "" once it may. Opens the wave then."""
        if not phase.barrier or wave <= phase.wave:
            return ""
        barrier = self.look(phase)
        if barrier.why:
            return f"wave {wave + 1} of {phase.name}: {barrier.why}"
        self._since.pop(phase.id, None)
        phase.wave = wave
        self._book.begin()
        self._book.db.execute("update phase set wave = ? where id = ?", (wave, phase.id))
        self._book.event(phase.run.id, "wave", "opened", f"wave {wave + 1} of {phase.name}")
        return ""

    def look(self, phase: Phase) -> Barrier:
        """How the barrier behind a phase's open wave stands. Later ones are looked at only when the first holds."""
        running = self._running(phase)
        if running:
            self._since.pop(phase.id, None)
            return Barrier(running=running)
        since = self._since.setdefault(phase.id, time.monotonic())
        barrier = Barrier("", self._left_over(phase), self._room.clean(phase.run.gate), self._unmet(phase, since))
        if barrier.why:
            self._later(_LOOK_AGAIN if barrier.left_over else 1.0)
        return barrier

    def _running(self, phase: Phase) -> str:
        """Jobs of the open wave that aren't over, or whose supervisor lives."""
        count = self._book.db.execute(
            f"select count(*) from job where phase = ? and wave <= ? and state not in ({_MARKS})",
            (phase.id, phase.wave, *OVER),
        ).fetchone()[0]
        return f"{count} jobs of the wave before aren't over" if count else ""

    def _left_over(self, phase: Phase) -> str:
        """Processes that carry the mark of an attempt of the wave. Such a one is killed, and must be seen gone."""
        found = processes.marks(b"WIDELANE_ATTEMPT")
        if not found:
            return ""
        left: list[int] = []
        for pid, nonce in found.items():
            row = self._book.db.execute(
                "select 1 from attempt join job on job.id = attempt.job"
                " where nonce = ? and phase = ? and wave <= ? and attempt.state != 'open'",
                (nonce, phase.id, phase.wave),
            ).fetchone()
            if row is not None:
                left.append(pid)
        processes.signal_all(left, signal.SIGKILL)
        return f"left-over processes: {', '.join(map(str, left))}" if left else ""

    def _unmet(self, phase: Phase, since: float) -> str:
        for one in phase.preconditions:
            why: Optional[str] = self._guard.fresh(one, phase.run.spec["cwd"], since)
            if why is None:
                return "a precondition is being looked at"
            if why:
                self._since[phase.id] = time.monotonic()
                return why
        return ""
