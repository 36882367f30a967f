"""One dispatch on one host: setup once, units over the slots, merge once, and the end of it.

Everything is decided in `turn`, from the states of the jobs; what runs in worker threads reports through the loop.
"""

from __future__ import annotations

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Callable, Optional

from .attempt import Folder, Standing, read_record
from .engine import Ending, Engine
from .loop import Loop
from .prepare import lay, read_unit_record, record_key
from .progress import Reporter
from .publish import Facts, GaveUpError, Outcome, Publisher
from .requests import Requests, named
from .slots import Slots
from .spec import Spec, Task
from .state import Attempt, Job, State
from .store import Store

_VOIDS = 5
SETUP = "setup"
MERGE = "merge"


@dataclass(frozen=True)
class End:
    """How the dispatch ended here: the state and reason of finished.json."""

    state: str
    reason: str = ""


@dataclass
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
    """Runs a spec to its end. `end` is set when nothing is left to do."""

    def __init__(self, spec: Spec, requests: Requests, parts: Parts) -> None:
        self.end: Optional[End] = None
        self.gave_up = ""
        self._spec = spec
        self._requests = requests
        self._parts = parts
        self._tasks: dict[str, Task] = {**{unit.name: unit for unit in spec.units}, **named(spec.merge)}
        self._jobs: dict[str, Job] = {}
        self._running: set[str] = set()
        self._voids: dict[str, int] = {}
        self._pool = ThreadPoolExecutor(4, "publish")
        self._pending = 0
        self._fetched = False
        self._fetching = False
        self._cancelling = False
        parts.engine.on_end = self._ended

    def begin(self) -> None:
        """Learn what is done already, and take over what runs."""
        known = self._parts.state.jobs()
        names = [*([SETUP] if self._spec.setup else []), *self._order(), *named(self._spec.merge)]
        for name in names:
            job = known.get(name) or Job(name)
            self._jobs[name] = job
            if job.state == "ready" and name in self._tasks and self._recorded(name):
                job.state, job.cached = "succeeded", True
            self._parts.state.save(job)
        self._parts.engine.resume()
        for attempt in self._parts.engine.live():
            self._running.add(attempt.job)
            self._parts.slots.take(attempt.slots, attempt.job)
        for job in self._jobs.values():
            if job.state == "verifying":
                self._verify_again(job)

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
        if not self._running and not self._pending and not self._fetching:
            self.end = self._ending()
        self._parts.reporter.tell(self.progress())
        return self.end is not None

    def progress(self) -> dict[str, Any]:
        """The content of progress.json."""
        units = self._units()
        return {
            "total": len(units),
            "succeeded": sum(job.state == "succeeded" for job in units),
            "failed": sum(job.state == "failed" for job in units),
            "running": sum(job.name in self._running for job in units),
            "gpus": self._parts.slots.rows(),
            "state": self._stage(),
        }

    def summary(self) -> dict[str, Any]:
        """The counts of finished.json."""
        units = self._units()
        merge = self._jobs.get(MERGE)
        ended = merge is not None and merge.state in ("succeeded", "failed")
        return {
            "total": len(units),
            "succeeded": sum(job.state == "succeeded" for job in units),
            "failed": sum(job.state == "failed" for job in units),
            "cached": sum(job.cached for job in units),
            "realized_width": self._parts.slots.width,
            "merge": merge.state if merge is not None and ended else None,
            "gpu_seconds_busy": round(self._parts.state.busy_seconds(), 3),
        }

    def close(self) -> None:
        """Wait for the worker threads."""
        self._parts.publisher.stop.set()
        self._pool.shutdown(wait=True)

    def _order(self) -> list[str]:
        """Wide units first, so that none waits at the end for the others; then as given."""
        units = sorted(self._spec.units, key=lambda unit: -self._parts.slots.need(unit.gpus))
        return [unit.name for unit in units]

    def _units(self) -> list[Job]:
        return [job for name, job in self._jobs.items() if name not in (SETUP, MERGE)]

    def _recorded(self, name: str) -> bool:
        return self._parts.publisher.stubbornly(
            lambda: self._parts.store.exists(record_key(self._tasks[name].digest))
        )

    def _start_more(self) -> None:
        units = self._units()
        merge = self._jobs.get(MERGE)
        merge_due = (
            merge is not None and merge.state == "ready" and all(job.state == "succeeded" for job in units)
        )
        if not merge_due and not any(job.state == "ready" for job in units):
            return
        setup = self._jobs.get(SETUP)
        if setup is not None and setup.state != "succeeded":
            if setup.state == "ready" and SETUP not in self._running:
                self._start(setup, tuple(range(self._parts.slots.size)))
        elif merge_due and merge is not None:
            self._start_merge(merge)
        else:
            self._start_units(units)

    def _start_units(self, units: list[Job]) -> None:
        free = self._parts.slots.free()
        for job in units:
            if not free:
                return
            if job.state != "ready" or job.name in self._running:
                continue
            need = self._parts.slots.need(self._tasks[job.name].gpus)
            if need > self._parts.slots.size:
                self._refuse(job, need)
            elif need <= len(free):
                self._start(job, tuple(free[:need]))
                free = free[need:]

    def _refuse(self, job: Job, need: int) -> None:
        job.state, job.reason = "failed", "spawn_error"
        self._parts.state.save(job)
        self._note(job.name, f"needs {need} GPUs, the host has {self._parts.slots.size}")

    def _start_merge(self, merge: Job) -> None:
        if self._fetched:
            if merge.name not in self._running:
                self._start(merge, tuple(range(self._parts.slots.size)))
        elif not self._fetching:
            self._fetching = True
            self._submit(self._fetch, self._after_fetch)

    def _fetch(self) -> None:
        """Bring the outputs of units that ran elsewhere into the work folder."""
        for job in self._units():
            if job.cached:
                record = read_unit_record(self._parts.store, self._tasks[job.name].digest)
                self._parts.publisher.stubbornly(lambda: lay(self._parts.store, record, self._requests.work))

    def _after_fetch(self, done: Future[Any]) -> None:
        self._fetching = False
        try:
            done.result()
            self._fetched = True
        except GaveUpError as error:
            self.gave_up = str(error)

    def _start(self, job: Job, slots: tuple[int, ...]) -> None:
        gpus = self._parts.slots.visible(slots)
        task = self._tasks.get(job.name)
        request = self._requests.setup(gpus) if task is None else self._requests.task(task, gpus)
        self._parts.engine.start(job.name, slots, len(gpus), request)
        self._parts.slots.take(slots, job.name)
        self._running.add(job.name)

    def _ended(self, ending: Ending) -> None:
        attempt = ending.attempt
        job = self._jobs[attempt.job]
        self._running.discard(job.name)
        self._parts.slots.give_back(attempt.slots, ending.standing is Standing.ENDED)
        stopped = ending.exit is not None and bool(ending.exit.get("stopped"))
        if self._cancelling and (stopped or ending.standing is not Standing.ENDED):
            job.state = "cancelled"
        elif ending.standing is Standing.VOID:
            self._count_void(job)
        elif (ending.standing is Standing.LOST or stopped) and job.losses == 0:
            job.losses = 1
        else:
            job.state = "verifying"
            self._verify(job, attempt, ending)
        self._parts.state.save(job)

    def _count_void(self, job: Job) -> None:
        """No attempt is spent, but a host where nothing ever starts must not go on for ever."""
        self._voids[job.name] = self._voids.get(job.name, 0) + 1
        if self._voids[job.name] >= _VOIDS:
            job.state, job.reason = "failed", "spawn_error"
            self._note(job.name, "the supervisor never started")

    def _verify_again(self, job: Job) -> None:
        attempt = self._parts.state.last_over(job.name)
        if attempt is None:
            job.state = "ready"
            return
        folder = self._parts.engine.folder(attempt)
        record = read_record(folder.exit)
        self._verify(job, attempt, Ending(attempt, Standing.LOST if record is None else Standing.ENDED, record))

    def _verify(self, job: Job, attempt: Attempt, ending: Ending) -> None:
        folder = self._parts.engine.folder(attempt)
        stopped = ending.exit is not None and bool(ending.exit.get("stopped"))
        task = self._tasks.get(job.name)
        if task is None:
            self._submit(lambda: self._judge_setup(folder, ending), lambda done: self._judged(job, done))
            return
        facts = Facts(
            task=task,
            folder=folder,
            n=attempt.n,
            gpus=self._parts.slots.visible(attempt.slots),
            standing_lost=ending.standing is Standing.LOST or stopped,
            exit=ending.exit,
        )
        self._submit(lambda: self._parts.publisher.attempt(facts), lambda done: self._judged(job, done))

    def _judge_setup(self, folder: Folder, ending: Ending) -> Outcome:
        self._parts.publisher.log(folder, SETUP)
        record = ending.exit or {}
        if record.get("exit_code") == 0:
            return Outcome("")
        how = record.get("spawn_error") or f"exit code {record.get('exit_code')}, signal {record.get('signal')}"
        return Outcome("env_broken", f"setup: {how}" if record else "setup was lost")

    def _judged(self, job: Job, done: Future[Outcome]) -> None:
        try:
            outcome = done.result()
        except GaveUpError as error:
            self.gave_up = str(error)
            return
        job.state, job.reason = ("failed", outcome.reason) if outcome.reason else ("succeeded", "")
        if outcome.reason:
            self._note(job.name, f"{outcome.reason}: {outcome.detail}")
        self._parts.state.save(job)

    def _submit(self, work: Callable[[], Any], then: Callable[[Future[Any]], None]) -> None:
        self._pending += 1

        def arrived(done: Future[Any]) -> None:
            self._pending -= 1
            then(done)

        future: Future[Any] = self._pool.submit(work)
        future.add_done_callback(lambda done: self._parts.loop.post(lambda: arrived(done)))

    def _note(self, job: str, text: str) -> None:
        self._parts.state.set_meta(f"note:{job}", text)
        sys.stderr.write(f"widelane: {job}: {text}\n")

    def _stage(self) -> str:
        if self.end is not None:
            return self.end.state
        if SETUP in self._running:
            return "setup"
        if MERGE in self._running or self._fetching:
            return "merging"
        return "cancelling" if self._cancelling else "running"

    def _ending(self) -> Optional[End]:
        units = self._units()
        setup, merge = self._jobs.get(SETUP), self._jobs.get(MERGE)
        if self.gave_up:
            return End("failed", f"store_failed: {self.gave_up}")
        failed = [job for job in units if job.state == "failed"]
        left = [job for job in units if job.state not in ("succeeded", "failed")]
        if setup is not None and setup.state == "failed":
            return End("env_broken", self._parts.state.meta(f"note:{SETUP}") or "setup")
        if not left and not failed and (merge is None or merge.state == "succeeded"):
            return End("succeeded")
        if self._cancelling:
            return End("cancelled", "asked to stop")
        if left:
            return None
        if failed:
            first = failed[0]
            return End("failed", f"unit {first.name}: {self._parts.state.meta('note:' + first.name)}")
        if merge is not None and merge.state == "failed":
            return End("failed", f"merge: {self._parts.state.meta('note:' + MERGE)}")
        return None
