"""What an ended attempt leaves in the store: outputs, log, and last of all the record that makes it done."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

from . import outputs
from .attempt import Folder, Record, read_record
from .prepare import record_key
from .spec import Spec, Task
from .store import Store, StoreMissingError, copy

LOG_HEAD = 4 << 20
LOG_TAIL = 12 << 20

T = TypeVar("T")


class GaveUpError(OSError):
    """The store failed for longer than it is waited for."""


@dataclass(frozen=True)
class Outcome:
    """`reason` is "" for success. `detail` is for people."""

    reason: str
    detail: str = ""


@dataclass(frozen=True)
class Facts:
    """An attempt that is over; `exit` is None when it was lost."""

    folder: Folder
    n: int
    gpus: tuple[str, ...]
    exit: Optional[Record]


def persist(act: Callable[[], T], patience: float, stop: Optional[threading.Event] = None) -> T:
    """Try again while the store fails, with growing pauses, until `patience` seconds are over or `stop` is set.

    Raises `GaveUpError`; at once for a key that isn't there.
    """
    deadline = time.monotonic() + patience
    halt = stop or threading.Event()
    pause = 0.05
    while True:
        try:
            return act()
        except StoreMissingError as error:
            raise GaveUpError(error.errno, str(error)) from error
        except OSError as error:
            if time.monotonic() + pause > deadline or halt.is_set():
                raise GaveUpError(error.errno, f"the store failed: {error}") from error
        halt.wait(pause)
        pause = min(pause * 2, 5.0)


class Publisher:
    """Used from worker threads; every call may be repeated."""

    def __init__(self, store: Store, spec: Spec, work: Path) -> None:
        self._store = store
        self._spec = spec
        self._cwd = work / spec.workdir
        self.hostname = ""
        """Goes into records."""
        self.stop = threading.Event()
        """Set to cut waits short."""

    def setup(self, facts: Facts) -> Outcome:
        """Judge the host's preparation and publish its log. Raises `GaveUpError`."""
        self._log(facts.folder, "setup")
        outcome = _how(facts.exit)
        return Outcome("env_broken", f"setup: {outcome.detail}") if outcome.reason else outcome

    def task(self, task: Task, facts: Facts) -> Outcome:
        """Judge an attempt and publish what it made. Raises `GaveUpError`."""
        outcome, files = self._judge(task, facts)
        log = self._log(facts.folder, f"{task.name}-{facts.n}")
        body = self._body(task, facts, log)
        if not outcome.reason:
            try:
                body["outputs"] = [self._output(path) for path in files]
            except _UnreadableError as error:
                outcome = Outcome("output_missing", str(error))
        if outcome.reason:
            body.update(reason=outcome.reason, detail=outcome.detail, partial=list(files))
            key = f"failures/{self._spec.dispatch_id}/{task.digest}/{self._spec.lease}-{facts.n}.json"
            self.stubbornly(lambda: self._store.put(key, _json(body)))
        else:
            self.stubbornly(lambda: self._store.put_if_absent(record_key(task.digest), _json(body)))
        return outcome

    def stubbornly(self, act: Callable[[], T]) -> T:
        """Try again while the store fails. Raises `GaveUpError`."""
        return persist(act, self._spec.limits.store_patience, self.stop)

    def _log(self, folder: Folder, name: str) -> str:
        key = f"logs/{self._spec.lease}/{name}.log"
        self.stubbornly(lambda: self._store.put(key, clip(folder.log), durable=False))
        return key

    def _judge(self, task: Task, facts: Facts) -> tuple[Outcome, tuple[str, ...]]:
        """How it went, and the files it made."""
        how = _how(facts.exit)
        if facts.exit is None or facts.exit.get("spawn_error"):
            return how, ()
        start = read_record(facts.folder.start) or {}
        verdict = outputs.judge(self._cwd, task.outputs, start.get("before", {}))
        return (how if how.reason else Outcome(verdict.reason, verdict.detail)), verdict.files

    def _body(self, task: Task, facts: Facts, log: str) -> dict[str, Any]:
        record = facts.exit or {}
        return {
            "unit": task.digest,
            "outputs": [],
            "workdir": self._spec.workdir,
            "exit_code": record.get("exit_code"),
            "signal": record.get("signal"),
            "lease": self._spec.lease,
            "host": self.hostname,
            "gpus": list(facts.gpus),
            "started": record.get("started"),
            "ended": record.get("ended"),
            "seconds": record.get("seconds"),
            "peak_rss_kib": record.get("peak_rss_kib"),
            "log": log,
            "run_id": self._spec.run_id,
            "dispatch_id": self._spec.dispatch_id,
        }

    def _output(self, path: str) -> dict[str, Any]:
        file = self._cwd / path
        try:
            with file.open("rb") as source:
                sha256 = copy(source, None)
            size = file.stat().st_size
        except OSError as error:
            raise _UnreadableError(f"{path}: {error}") from error
        key = f"blobs/{sha256}"
        if not self.stubbornly(lambda: self._store.exists(key)):
            self.stubbornly(lambda: self._store.put_file(key, file, sha256))
        return {"path": path, "sha256": sha256, "size": size}


def _how(record: Optional[Record]) -> Outcome:
    """What the exit record alone says."""
    if record is None:
        return Outcome("lost", "the supervisor died, or was told to stop, before the end")
    if record.get("spawn_error"):
        return Outcome("spawn_error", str(record["spawn_error"]))
    if record["signal"] is not None:
        return Outcome("signal", f"ended by signal {record['signal']}")
    if record["exit_code"] != 0:
        return Outcome("exit", f"exit code {record['exit_code']}")
    return Outcome("")


class _UnreadableError(Exception):
    """An output that is there and can't be read."""


def clip(log: Path) -> bytes:
    """A log, with the middle of a large one replaced by a line that says so."""
    try:
        size = log.stat().st_size
        with log.open("rb") as source:
            if size <= LOG_HEAD + LOG_TAIL:
                return source.read()
            head = source.read(LOG_HEAD)
            source.seek(size - LOG_TAIL)
            left_out = size - LOG_HEAD - LOG_TAIL
            return head + f"\n[{left_out} bytes left out]\n".encode() + source.read(LOG_TAIL)
    except FileNotFoundError:
        return b""


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True).encode()
