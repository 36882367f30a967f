"""One dispatch on one host: setup once, units over the slots, merge once.

Everything is decided in `turn`, from the states of the jobs; what runs in worker threads reports through the loop.
"""

from __future__ import annotations

import functools
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Optional

from .attempt import Standing, read_record
from .board import MERGE, SETUP, Board
from .engine import Ending, Engine
from .finish import End, ending
from .loop import Loop
from .prepare import fetch, record_key
from .progress import Reporter
from .publish import Facts, GaveUpError, Outcome, Publisher
from .requests import Requests
from .slots import Slots
from .spec import Spec, Task
from .state import Job, State
from .store import Store

_VOIDS = 8


@dataclass(frozen=True)
class Parts:
    """What a dispatch works with."""

    loop: Loop
    state: State
    store: Store
    engine: Engine
    slots: Slots
    publisher: Publisher
    reporter: Reporter


class Dispatch:
    """Runs a spec to its end. `end` is set when nothing is left to do; `gave_up` when the store failed for good."""

    def __init__(self, spec: Spec, requests: Requests, parts: Parts, void_pause: float = 0.1) -> None:
        self.end: Optional[End] = None
        self.gave_up = ""
        self.board = Board(parts.state)
        self._spec = spec
        self._requests = requests
        self._parts = parts
        merge = () if spec.merge is None else (spec.merge,)
        self._tasks: dict[str, Task] = {task.name: task for task in (*spec.units, *merge)}
        self._running: set[str] = set()
        self._void_pause = void_pause
        self._voids: dict[str, int] = {}
        self._cooling: set[str] = set()
        self._pool = ThreadPoolExecutor(4, "publish")
        self._busy = 0
        self._fetched = False
        self._cancelling = False
        parts.engine.on_end = self._ended

    def begin(self) -> None:
        """Learn what is done already, and take over what runs."""
        known = self._parts.state.jobs()
        opened = {attempt.job for attempt in self._parts.state.open_attempts()}
        for name in [*([SETUP] if self._spec.setup else []), *self._tasks]:
            job = known.get(name) or Job(name)
            if job.state == "ready" and name in self._tasks and self._recorded(name):
                job.state, job.cached = "succeeded", name not in opened
            self.board.add(job, self._need(name))
        for job in self.board.jobs():
            if job.state == "verifying":
                self._verify_again(job)
            elif job.state == "ready" and job.name not in opened:
                self._queue(job)
        for attempt in self._parts.state.open_attempts():
            self._parts.slots.take(attempt.slots, attempt.job)
            self._running.add(attempt.job)
        self._parts.engine.resume()

    def cancel(self) -> None:
        """Start nothing more and end what runs."""
        if not self._cancelling:
            self._cancelling = True
            self._parts.engine.stop_all()

    def turn(self) -> bool:
        """Decide what is next; True when the dispatch is over."""
        if not self._cancelling and not self.gave_up:
            self._start_more()
        self._parts.engine.flush()
        if not self._running and not self._busy:
            store = End("failed", f"store_failed: {self.gave_up}") if self.gave_up else None
            self.end = store or ending(self.board, self._parts.state, self._cancelling)
        self._parts.reporter.tell(self._progress())
        return self.end is not None

    def close(self) -> None:
        """Wait for the worker threads."""
        self._parts.publisher.stop.set()
        self._pool.shutdown(wait=True)

    def _need(self, name: str) -> int:
        task = self._tasks.get(name)
        return self._parts.slots.size if task is None else self._parts.slots.need(task.gpus)

    def _recorded(self, name: str) -> bool:
        key = record_key(self._tasks[name].digest)
        return self._parts.publisher.stubbornly(lambda: self._parts.store.exists(key))

    def _queue(self, job: Job) -> None:
        need, size = self._need(job.name), self._parts.slots.size
        if need > size:
            self._note(job.name, f"spawn_error: needs {need} GPUs, the host has {size}")
            self.board.move(job, "failed", "spawn_error")
        elif job.name not in (SETUP, MERGE):
            self.board.queue(job)

    def _start_more(self) -> None:
        merge = self.board.get(MERGE)
        merge_due = merge is not None and merge.state == "ready" and self.board.count() == self.board.count("succeeded")
        if not merge_due and not self.board.count("ready"):
            return
        setup = self.board.get(SETUP)
        if setup is not None and setup.state != "succeeded":
            self._start_alone(setup)
        elif not merge_due or merge is None:
            self._start_units()
        elif self._fetched:
            self._start_alone(merge)
        elif not self._busy:
            self._submit(self._fetch, self._after_fetch)

    def _start_alone(self, job: Job) -> None:
        """Setup and merge have the whole host."""
        if job.state == "ready" and job.name not in self._running | self._cooling:
            self._start(job, tuple(range(self._parts.slots.size)))

    def _start_units(self) -> None:
        free = self._parts.slots.free()
        while free:
            found = self.board.take(len(free))
            if found is None:
                return
            job, need = found
            self._start(job, tuple(free[:need]))
            free = free[need:]

    def _start(self, job: Job, slots: tuple[int, ...]) -> None:
        gpus = self._parts.slots.visible(slots)
        task = self._tasks.get(job.name)
        request = self._requests.setup(gpus) if task is None else self._requests.task(task, gpus)
        self._parts.engine.start(job.name, slots, len(gpus), request)
        self._parts.slots.take(slots, job.name)
        self._running.add(job.name)

    def _ended(self, ending: Ending) -> None:
        job = self.board.get(ending.attempt.job)
        if job is None:
            return
        self._running.discard(job.name)
        ran = ending.standing is Standing.ENDED
        self._parts.slots.give_back(ending.attempt.slots, ran and job.name not in (SETUP, MERGE))
        if self._cancelling and (ending.stopped or not ran):
            self.board.move(job, "cancelled")
        elif ending.standing is Standing.VOID:
            self._try_later(job)
        elif (not ran or ending.stopped) and ending.clear and job.losses == 0:
            job.losses = 1
            self.board.move(job, "ready")
            self._queue(job)
        else:
            self.board.move(job, "verifying")
            self._verify(job, ending)

    def _try_later(self, job: Job) -> None:
        """No attempt is spent, but a host where nothing ever starts must not go on for ever."""
        count = self._voids[job.name] = self._voids.get(job.name, 0) + 1
        if count >= _VOIDS:
            self._note(job.name, "spawn_error: the supervisor never started; see supervisors.log")
            self.board.move(job, "failed", "spawn_error")
            return

        def again() -> None:
            self._cooling.discard(job.name)
            self._queue(job)

        self._cooling.add(job.name)
        self._parts.loop.after(self._void_pause * 2 ** (count - 1), again)

    def _verify_again(self, job: Job) -> None:
        """A former scheduler died between the end of an attempt and its publication."""
        attempt = self._parts.state.last_over(job.name)
        if attempt is None:
            self.board.move(job, "ready")
            self._queue(job)
            return
        record = read_record(self._parts.engine.folder(attempt).exit)
        self._verify(job, Ending(attempt, Standing.LOST if record is None else Standing.ENDED, record))

    def _verify(self, job: Job, ending: Ending) -> None:
        task = self._tasks.get(job.name)
        facts = Facts(
            folder=self._parts.engine.folder(ending.attempt),
            n=ending.attempt.n,
            gpus=self._parts.slots.visible(ending.attempt.slots),
            exit=None if ending.stopped else ending.exit,
        )
        publisher = self._parts.publisher

        def judge() -> Outcome:
            return publisher.setup(facts) if task is None else publisher.task(task, facts)

        self._submit(judge, lambda done: self._judged(job, done))

    def _judged(self, job: Job, done: Future[Outcome]) -> None:
        try:
            outcome = done.result()
        except GaveUpError as error:
            self.gave_up = str(error)
            return
        if outcome.reason:
            code = "" if job.name == SETUP else f"{outcome.reason}: "
            self._note(job.name, code + outcome.detail)
        self.board.move(job, "failed" if outcome.reason else "succeeded", outcome.reason)

    def _fetch(self) -> None:
        """Bring the outputs of units that ran elsewhere into the work folder."""
        for job in self.board.units():
            if job.cached:
                bring = functools.partial(fetch, self._parts.store, self._tasks[job.name].digest, self._requests.work)
                self._parts.publisher.stubbornly(bring)

    def _after_fetch(self, done: Future[None]) -> None:
        try:
            done.result()
            self._fetched = True
        except GaveUpError as error:
            self.gave_up = str(error)

    def _submit(self, work: Callable[[], Any], then: Callable[[Future[Any]], None]) -> None:
        self._busy += 1

        def arrived(done: Future[Any]) -> None:
            self._busy -= 1
            then(done)

        future: Future[Any] = self._pool.submit(work)
        future.add_done_callback(lambda done: self._parts.loop.post(lambda: arrived(done)))

    def _note(self, job: str, text: str) -> None:
        self._parts.state.set_meta(f"note:{job}", text)
        sys.stderr.write(f"widelane: {job}: {text}\n")

    def _progress(self) -> dict[str, Any]:
        """The content of progress.json."""
        return {
            "total": self.board.count(),
            "succeeded": self.board.count("succeeded"),
            "failed": self.board.count("failed"),
            "running": len(self._running - {SETUP, MERGE}),
            "gpus": self._parts.slots.rows(),
            "state": self._stage(),
        }

    def _stage(self) -> str:
        if self.end is not None:
            return self.end.state
        if self._cancelling:
            return "cancelling"
        if SETUP in self._running:
            return "setup"
        return "merging" if MERGE in self._running else "running"
