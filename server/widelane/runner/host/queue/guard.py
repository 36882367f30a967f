"""Jobs that are held until preconditions are met. Looks are shared: one per precondition and folder, not per job."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional

from ..inotify import Inotify
from ..loop import Loop
from . import facts

Json = dict[str, Any]
_DAY = 86400.0


def _ignore(job: int, one: Json, why: str, expired: bool) -> None:
    """Until somebody wants to hear of it."""


@dataclass
class _Fact:
    """One precondition in one folder. `looked` is when the look began whose answer is `why`."""

    one: Json
    cwd: str
    jobs: set[int] = field(default_factory=set[int])
    why: Optional[str] = None
    looked: float = float("-inf")
    looking: bool = False
    timer: float = float("-inf")
    watch: Optional[int] = None


@dataclass
class _Held:
    facts: list[str]
    since: float


class Guard:
    """`on_open(job)` when all is met; `on_shut(job, precondition, why, expired)` for news of one that isn't."""

    def __init__(self, loop: Loop, root: Path) -> None:
        self._loop = loop
        self._root = root
        self._facts: dict[str, _Fact] = {}
        self._held: dict[int, _Held] = {}
        self._inotify = Inotify()
        self._closed = False
        self.gpus: Optional[int] = None
        self.on_open: Callable[[int], None] = lambda _: None
        self.on_shut: Callable[[int, Json, str, bool], None] = _ignore
        if self._inotify.fd >= 0:
            loop.watch(self._inotify.fd, self._changed)

    @property
    def held(self) -> int:
        """How many jobs wait here."""
        return len(self._held)

    def hold(self, job: int, preconditions: list[Json], cwd: str) -> None:
        """Keep a job until all are met; told by `on_open`, perhaps before this returns."""
        names = [self._fact(one, cwd) for one in preconditions]
        self._held[job] = _Held(names, time.monotonic())
        for name in names:
            self._facts[name].jobs.add(job)
        for name in names:
            if self._facts[name].looked < time.monotonic() - 0.5:
                self._look(name)
        self._weigh(job)

    def drop(self, job: int) -> None:
        """Keep a job no longer."""
        held = self._held.pop(job, None)
        for name in held.facts if held else ():
            fact = self._facts[name]
            fact.jobs.discard(job)
            if not fact.jobs and fact.watch is not None:
                if all(other.watch != fact.watch for other in self._facts.values() if other is not fact):
                    self._inotify.remove(fact.watch)
                fact.watch = None

    def fresh(self, one: Json, cwd: str, since: float) -> Optional[str]:
        """Why a precondition isn't met ("" when it is) by a look that began after `since`; None: it is being looked."""
        name = self._fact(one, cwd)
        fact = self._facts[name]
        if fact.looked < since:
            self._look(name)
        return fact.why if fact.looked >= since else None

    def close(self) -> None:
        """Give descriptors back; answers that come later are dropped."""
        self._closed = True
        if self._inotify.fd >= 0:
            self._loop.unwatch(self._inotify.fd)
            self._inotify.close()

    def _fact(self, one: Json, cwd: str) -> str:
        name = json.dumps([cwd, one], sort_keys=True)
        if name not in self._facts:
            self._facts[name] = _Fact(one, cwd)
        return name

    def _look(self, name: str) -> None:
        fact = self._facts[name]
        if fact.looking:
            return
        begin = time.monotonic()
        if fact.jobs:
            self._watch(fact)
        if not facts.slow(fact.one):
            self._answer(name, begin, facts.unmet(fact.one, fact.cwd, self._root, self.gpus))
            return
        fact.looking = True

        def work() -> None:
            why = facts.unmet(fact.one, fact.cwd, self._root, self.gpus)
            if not self._closed:
                self._loop.post(lambda: self._answer(name, begin, why))

        threading.Thread(target=work, name="precondition", daemon=True).start()

    def _answer(self, name: str, begin: float, why: str) -> None:
        fact = self._facts[name]
        fact.looking, fact.looked, fact.why = False, begin, why
        if why and fact.jobs:
            self._look_later(name, fact)
        for job in list(fact.jobs):
            self._weigh(job)

    def _look_later(self, name: str, fact: _Fact) -> None:
        """What no event tells is looked at from time to time, one timer each."""
        now = time.monotonic()
        if fact.timer > now:
            return
        pause = facts.pause(fact.one)
        fact.timer = now + pause

        def due() -> None:
            fact.timer = float("-inf")
            if fact.jobs and not self._closed:
                self._look(name)

        self._loop.after(pause, due)

    def _weigh(self, job: int) -> None:
        held = self._held.get(job)
        if held is None:
            return
        for name in held.facts:
            fact = self._facts[name]
            if fact.why is None:
                return
            if fact.why:
                limit = fact.one.get("timeout", _DAY)
                expired = limit is not None and time.monotonic() - held.since >= limit
                if limit is not None and not expired:
                    self._expire_later(job, held, float(limit))
                self.on_shut(job, fact.one, fact.why, expired)
                return
        self.drop(job)
        self.on_open(job)

    def _expire_later(self, job: int, held: _Held, limit: float) -> None:
        left = limit - (time.monotonic() - held.since)
        if left < facts.pause({"kind": "file"}) and held.since >= 0:
            self._loop.after(left + 0.001, lambda: self._weigh(job))

    def _watch(self, fact: _Fact) -> None:
        folder = facts.watched(fact.one, fact.cwd, self._root)
        if folder is not None:
            fact.watch = self._inotify.add(folder)

    def _changed(self) -> None:
        changed = self._inotify.read()
        for name, fact in list(self._facts.items()):
            if fact.watch in changed and fact.jobs:
                self._look(name)
