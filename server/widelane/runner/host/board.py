"""The jobs of a dispatch: their states, how many are in each, and which is next."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable

from .state import Job, State

SETUP = "setup"
MERGE = "merge"
OVER = ("succeeded", "failed")


class Board:
    """Every change goes to the state as well; nothing here takes longer with more jobs.

    Units that need more slots come first, so that none waits at the end for all others; those that need the same
    come in the order given.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._jobs: dict[str, Job] = {}
        self._need: dict[str, int] = {}
        self._rank: dict[str, int] = {}
        self._ready: dict[int, list[tuple[int, str]]] = {}
        self._counts: Counter[str] = Counter()
        self.cached = 0
        self.first_failed = ""

    def add(self, job: Job, need: int) -> None:
        """Put a job up; units only are counted and queued."""
        self._jobs[job.name] = job
        self._need[job.name] = need
        self._rank[job.name] = len(self._rank)
        if self._is_unit(job):
            self._counts[job.state] += 1
            self.cached += int(job.cached)
            if job.state == "failed":
                self.first_failed = self.first_failed or job.name
        self._state.save(job)

    def move(self, job: Job, state: str, reason: str = "") -> None:
        """Change a job's state."""
        if self._is_unit(job):
            self._counts[job.state] -= 1
            self._counts[state] += 1
            if state == "failed":
                self.first_failed = self.first_failed or job.name
        job.state, job.reason = state, reason
        self._state.save(job)

    def queue(self, job: Job) -> None:
        """A ready unit may be taken from now on."""
        heapq.heappush(self._ready.setdefault(self._need[job.name], []), (self._rank[job.name], job.name))

    def take(self, free: int) -> tuple[Job, int] | None:
        """The next unit that fits into `free` slots, and how many it needs."""
        for need in sorted(self._ready, reverse=True):
            if need <= free and self._ready[need]:
                return self._jobs[heapq.heappop(self._ready[need])[1]], need
        return None

    def get(self, name: str) -> Job | None:
        """A job by its name."""
        return self._jobs.get(name)

    def jobs(self) -> Iterable[Job]:
        """All of them, in the order given."""
        return self._jobs.values()

    def units(self) -> Iterable[Job]:
        """All but setup and merge."""
        return (job for job in self._jobs.values() if self._is_unit(job))

    def count(self, *states: str) -> int:
        """Units in any of these states; all of them without any."""
        return sum(self._counts[state] for state in states or tuple(self._counts))

    @staticmethod
    def _is_unit(job: Job) -> bool:
        return job.name not in (SETUP, MERGE)
