"""Starts attempts, adopts those that a dead scheduler left, and hears of every end exactly once.

It knows nothing of what a job is for: whoever owns it says what to run on which slots, and decides after an end.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional

from . import processes
from .attempt import Folder, Record, Standing, read_record, settle, write_plain
from .loop import Loop
from .state import Attempt, State
from .zygote import Zygote

_LOOK_AGAIN = 0.05
_ZYGOTE_DEATHS = 5


class EngineError(RuntimeError):
    """Attempts can't be started on this host."""


@dataclass
class Ending:
    """How an attempt ended. `exit` is the supervisor's record, None unless `standing` is ENDED."""

    attempt: Attempt
    standing: Standing
    exit: Optional[Record] = None


@dataclass
class _Live:
    attempt: Attempt
    folder: Folder
    pid: int = 0
    pidfd: Optional[int] = None


class Engine:
    """One per root folder. Call `flush` at the end of each turn: it commits and only then starts."""

    def __init__(self, loop: Loop, state: State, root: Path, runner: Path) -> None:
        self._loop = loop
        self._state = state
        self._folder = root / "attempts"
        self._folder.mkdir(exist_ok=True)
        self._runner = runner
        self._live: dict[str, _Live] = {}
        self._intended: list[_Live] = []
        self._unanswered: dict[str, _Live] = {}
        self._deaths = 0
        self._stopping = False
        self.on_end: Callable[[Ending], None] = lambda _: None
        self._zygote = self._make_zygote()

    def live(self) -> list[Attempt]:
        """The attempts that aren't known to be over."""
        return [live.attempt for live in self._live.values()]

    def folder(self, attempt: Attempt) -> Folder:
        """Where an attempt's records are."""
        return Folder(self._folder / attempt.name)

    def start(self, job: str, slots: tuple[int, ...], gpus: int, request: Record) -> None:
        """Intend an attempt; it is started by `flush`, after the commit."""
        attempt = self._state.intend(job, secrets.token_hex(8), slots, gpus)
        folder = Folder(self._folder / attempt.name)
        if folder.path.exists():
            shutil.rmtree(folder.path)
        folder.path.mkdir()
        request = {**request, "nonce": attempt.nonce}
        request["env"] = {**request["env"], "WIDELANE_ATTEMPT": attempt.nonce}
        write_plain(folder.request, request)
        live = _Live(attempt, folder)
        self._live[attempt.name] = live
        self._intended.append(live)

    def flush(self) -> None:
        """Commit everything so far, then hand the intended attempts to the zygote."""
        self._state.commit()
        intended, self._intended = self._intended, []
        for live in intended:
            self._unanswered[str(live.folder.path)] = live
        for live in intended:
            try:
                self._zygote.send(live.folder.path)
            except OSError:
                self._renew()
                return

    def resume(self) -> None:
        """Take over what a former scheduler left open."""
        for attempt in self._state.open_attempts():
            live = _Live(attempt, Folder(self._folder / attempt.name))
            self._live[attempt.name] = live
            live.folder.path.mkdir(exist_ok=True)
            self._look(live)

    def stop_all(self) -> None:
        """Ask every supervisor to end its process: TERM, then KILL after the grace."""
        self._stopping = True
        for live in self._live.values():
            self._stop(live)

    def close(self) -> None:
        """Let the zygote go. Supervisors go on."""
        self._loop.unwatch(self._zygote.channel.fileno())
        self._zygote.close()

    def _make_zygote(self) -> Zygote:
        zygote = Zygote(self._runner)
        self._loop.watch(zygote.channel.fileno(), self._answered)
        return zygote

    def _renew(self) -> None:
        """The zygote died: what it hadn't answered for is settled by its folder."""
        self._deaths += 1
        if self._deaths > _ZYGOTE_DEATHS:
            raise EngineError(f"{self._runner} zygote died {self._deaths} times without starting anything")
        self.close()
        self._zygote = self._make_zygote()
        unanswered, self._unanswered = self._unanswered, {}
        for live in unanswered.values():
            self._look(live)

    def _answered(self) -> None:
        answer = self._zygote.receive()
        if answer is None:
            self._renew()
            return
        self._deaths = 0
        path, pid, pidfd = answer
        live = self._unanswered.pop(path, None)
        if live is None:
            if pidfd is not None:
                os.close(pidfd)
            return
        self._attach(live, pid, pidfd)

    def _attach(self, live: _Live, pid: int, pidfd: Optional[int]) -> None:
        live.pid, live.pidfd = pid, pidfd
        if pidfd is None:
            self._loop.after(_LOOK_AGAIN, lambda: self._look(live))
        else:
            self._loop.watch(pidfd, lambda: self._died(live))
        if self._stopping:
            self._stop(live)

    def _died(self, live: _Live) -> None:
        self._detach(live)
        self._look(live)

    def _detach(self, live: _Live) -> None:
        if live.pidfd is not None:
            self._loop.unwatch(live.pidfd)
            os.close(live.pidfd)
            live.pidfd = None

    def _look(self, live: _Live) -> None:
        """Settle an attempt by its folder: over, or alive and to be watched."""
        if live.attempt.name not in self._live:
            return
        standing = settle(live.folder)
        if standing is not Standing.ALIVE:
            self._over(live, standing)
            return
        start = read_record(live.folder.start)
        pidfd = None
        if start is not None:
            live.pid = start["pid"]
            with contextlib.suppress(AttributeError, OSError):
                pidfd = os.pidfd_open(live.pid)
        if pidfd is not None and settle(live.folder) is not Standing.ALIVE:
            os.close(pidfd)
            pidfd = None
        self._attach(live, live.pid, pidfd)

    def _over(self, live: _Live, standing: Standing) -> None:
        del self._live[live.attempt.name]
        exit_record = read_record(live.folder.exit) if standing is Standing.ENDED else None
        if standing is Standing.LOST:
            self._sweep(live.attempt.nonce)
        seconds = None if exit_record is None else float(exit_record["seconds"])
        self._state.close_attempt(live.attempt, standing.value, seconds)
        self.on_end(Ending(live.attempt, standing, exit_record))

    def _sweep(self, nonce: str) -> None:
        """Kill what a lost attempt left, and see it gone, before anyone may try again."""
        mark = b"WIDELANE_ATTEMPT=" + nonce.encode()
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline:
            left = processes.marked(mark)
            if not left:
                return
            processes.signal_all(left, signal.SIGKILL)
            time.sleep(0.01)

    def _stop(self, live: _Live) -> None:
        with contextlib.suppress(OSError):
            if live.pidfd is not None:
                signal.pidfd_send_signal(live.pidfd, signal.SIGTERM)
            elif live.pid and settle(live.folder) is Standing.ALIVE:
                os.kill(live.pid, signal.SIGTERM)
