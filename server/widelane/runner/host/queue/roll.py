"""The active runs in memory: settings, and the jobs that are ready, as numbers in heaps."""

from __future__ import annotations

import collections
import heapq
import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Optional

from .base import Row
from .book import Book
from .cards import Gate
from .spec import JOB_DEFAULTS, Json

Key = tuple[int, str]
"""A phase's number and a shape: what jobs of it ask of cards."""


@dataclass
class Phase:
    """One phase of an active run. `wave` is the one that is open; `paused` says why nothing of it starts."""

    id: int
    name: str
    spec: Json
    run: Run
    paused: str
    wave: int
    live: int = 0
    failures: collections.deque[tuple[float, str, int]] = field(
        default_factory=collections.deque[tuple[float, str, int]]
    )
    """(monotonic time, signature, job) of late failures."""

    @property
    def barrier(self) -> bool:
        """Whether it has waves that wait for each other."""
        wave: Json = self.spec.get("wave") or self.run.spec["wave"] or {}
        return bool(wave.get("barrier"))

    @property
    def preconditions(self) -> list[Json]:
        """Those of its run and its own."""
        return [*self.run.spec["preconditions"], *self.spec.get("preconditions", [])]

    @property
    def full(self) -> bool:
        """Nothing more may start beside what runs."""
        return _reached(self.live, self.spec.get("max_parallel")) or _reached(
            self.run.live, self.run.spec["max_parallel"]
        )


@dataclass
class Run:
    """An active run. `spec` has no jobs."""

    id: int
    name: str
    spec: Json
    gate: Gate
    paused: bool
    live: int = 0
    cpu_live: int = 0
    blocked_since: Optional[float] = None
    phases: dict[int, Phase] = field(default_factory=dict[int, Any])

    @property
    def cpu_slots(self) -> int:
        """How many jobs without cards may run on this host."""
        return self.spec["cpu_slots"] or os.cpu_count() or 1

    def full(self, job: Json) -> Json:
        """A job's spec with all defaults."""
        return {**JOB_DEFAULTS, **self.spec.get("defaults", {}), **job}


class Roll:
    """Every active run, and every ready job of them."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.runs: dict[int, Run] = {}
        self.phases: dict[int, Phase] = {}
        self._ready: dict[Key, list[int]] = {}
        self._heads: dict[Key, Row] = {}

    def load(self, run: int) -> Optional[Run]:
        """Read a run and what is ready in it, or read it anew. None when it isn't active."""
        self.drop(run)
        db = self._book.db
        found = db.execute("select name, spec, paused from run where id = ? and state = 'running'", (run,)).fetchone()
        if found is None:
            return None
        spec = json.loads(found[1])
        one = Run(run, found[0], spec, Gate.of(spec), bool(found[2]))
        for row in db.execute("select id, name, spec, paused, wave from phase where run = ?", (run,)):
            phase = Phase(row[0], row[1], json.loads(row[2]), one, row[3], row[4])
            one.phases[phase.id] = self.phases[phase.id] = phase
        self.runs[run] = one
        self._book.load(run)
        for job, number, shape in db.execute(
            "select id, phase, shape from job where state = 'ready' and run = ? order by id", (run,)
        ):
            self._ready.setdefault((number, shape), []).append(job)
        return one

    def drop(self, run: int) -> None:
        """Forget a run."""
        gone = self.runs.pop(run, None)
        if gone is not None:
            for number in gone.phases:
                del self.phases[number]
            for key in [key for key in self._ready if key[0] in gone.phases]:
                del self._ready[key]
                self._heads.pop(key, None)

    def push(self, job: Row, shape: str) -> None:
        """A job became ready."""
        key = (job.phase, shape)
        heapq.heappush(self._ready.setdefault(key, []), job.id)
        self._heads.pop(key, None)

    def heads(self) -> list[tuple[int, Key]]:
        """The first ready job of each kind that is allowed to start, in the order of the jobs."""
        found: list[tuple[int, Key]] = []
        for key, heap in self._ready.items():
            phase = self.phases[key[0]]
            if not phase.paused and not phase.run.paused and not phase.full:
                found.append((heap[0], key))
        found.sort()
        return found

    def head(self, key: Key, read: Row) -> Row:
        """Remember the row of a head."""
        self._heads[key] = read
        return read

    def known_head(self, key: Key) -> Optional[Row]:
        """The row of the first job of a kind, when it was read before."""
        return self._heads.get(key)

    def pop(self, key: Key) -> Optional[int]:
        """Take the first job of a kind off; returns the next one."""
        heap = self._ready[key]
        heapq.heappop(heap)
        self._heads.pop(key, None)
        if heap:
            return heap[0]
        del self._ready[key]
        return None

    def remove(self, jobs: set[int]) -> None:
        """Take jobs off that are not to start any more."""
        for key in list(self._ready):
            kept = [job for job in self._ready[key] if job not in jobs]
            heapq.heapify(kept)
            self._heads.pop(key, None)
            if kept:
                self._ready[key] = kept
            else:
                del self._ready[key]

    def startable(self, run: Run) -> bool:
        """Whether a run has a ready job that isn't held back by a pause."""
        keys = (key for key in self._ready if key[0] in run.phases)
        return not run.paused and any(not run.phases[key[0]].paused for key in keys)

    def totals(self, run: Run) -> Counter[str]:
        """Jobs of a run by state."""
        total: Counter[str] = Counter()
        for number in run.phases:
            total.update(self._book.counts[number])
        return total

    def of(self, job: Row) -> tuple[Run, Phase]:
        """Run and phase of a job."""
        phase = self.phases[job.phase]
        return phase.run, phase

    def __iter__(self) -> Iterator[Run]:
        return iter(list(self.runs.values()))


def _reached(count: int, most: Optional[int]) -> bool:
    return most is not None and count >= most
