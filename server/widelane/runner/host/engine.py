"""Starts attempts, adopts those that a dead scheduler left, and hears of every end exactly once.

It knows nothing of what a job is for: whoever owns it says what to run on which slots, and decides after an end.
"""

from __future__ import annotations

import collections
import contextlib
import os
import secrets
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional, Protocol

from . import processes
from .attempt import Folder, Record, Standing, read_record, settle, write_plain
from .loop import Loop
from .state import Attempt
from .zygote import Zygote

_LOOK_AGAIN = 0.05
_ZYGOTE_DEATHS = 5
_ZYGOTE_PATIENCE = 30.0
_WINDOW = 8
"""Requests under way to the zygote; a socket's queue may be as short as ten, and both ends write."""


class EngineError(RuntimeError):
    """Attempts can't be started on this host."""


class Attempts(Protocol):
    """Where the owner keeps its attempts."""

    def intend(self, job: str, nonce: str, slots: tuple[int, ...], gpus: int) -> Attempt:
        """The row of an attempt that is about to be made."""
        ...

    def close_attempt(self, attempt: Attempt, state: str, seconds: Optional[float] = None) -> None:
        """An attempt is over: `ended`, `lost` or `void`."""
        ...

    def open_attempts(self) -> list[Attempt]:
        """Those that are not known to be over."""
        ...

    def commit(self) -> None:
        """Make all changes so far durable against the death of this process."""
        ...


@dataclass(frozen=True)
class Ending:
    """How an attempt ended. `exit` is the supervisor's record, None unless `standing` is ENDED."""

    attempt: Attempt
    standing: Standing
    exit: Optional[Record] = None
    clear: bool = True
    """False: something of a lost attempt still lives, so it must not be tried again."""

    @property
    def stopped(self) -> bool:
        """Someone asked its supervisor to stop."""
        return self.exit is not None and bool(self.exit.get("stopped"))


@dataclass
class _Live:
    attempt: Attempt
    folder: Folder
    pid: int = 0
    pidfd: Optional[int] = None
    stopping: bool = False


class Engine:
    """One per root folder. Call `flush` at the end of each turn: it commits and only then starts."""

    def __init__(self, loop: Loop, state: Attempts, root: Path, runner: Path) -> None:
        self._loop = loop
        self._state = state
        self._root = root
        self._folder = root / "attempts"
        self._folder.mkdir(exist_ok=True)
        self._runner = runner
        self._live: dict[str, _Live] = {}
        self._intended: list[_Live] = []
        self._outbox: collections.deque[_Live] = collections.deque()
        self._unanswered: dict[str, _Live] = {}
        self._asked_at = 0.0
        self._watching = False
        self._deaths = 0
        self._stopping = False
        self.on_start: Callable[[Attempt], None] = lambda _: None
        self.on_end: Callable[[Ending], None] = lambda _: None
        self._zygote = self._make_zygote()

    def live(self) -> list[Attempt]:
        """The attempts that aren't known to be over."""
        return [live.attempt for live in self._live.values()]

    def folder(self, attempt: Attempt) -> Folder:
        """Where an attempt's records are."""
        return Folder(self._folder / attempt.name)

    def start(self, job: str, slots: tuple[int, ...], gpus: int, request: Record) -> Attempt:
        """Intend an attempt; it is started by `flush`, after the commit. Raises OSError."""
        attempt = self._state.intend(job, secrets.token_hex(8), slots, gpus)
        folder = self.folder(attempt)
        self._make_folder(folder)
        env = {**request["env"], "WIDELANE_ATTEMPT": attempt.nonce}
        write_plain(folder.request, {**request, "nonce": attempt.nonce, "env": env})
        live = _Live(attempt, folder)
        self._live[attempt.name] = live
        self._intended.append(live)
        return attempt

    def flush(self) -> None:
        """Commit everything so far, then hand the intended attempts to the zygote."""
        self._state.commit()
        self._outbox.extend(self._intended)
        self._intended.clear()
        self._pump()

    def resume(self) -> None:
        """Take over what a former scheduler left open; `on_end` is called for what is over by now."""
        for attempt in self._state.open_attempts():
            live = _Live(attempt, self.folder(attempt))
            self._live[attempt.name] = live
            live.folder.path.mkdir(exist_ok=True)
            self._look(live)

    def stop_all(self) -> None:
        """Ask every supervisor to end its process: TERM, then KILL after the grace."""
        self._stopping = True
        while self._outbox:
            self._look(self._outbox.popleft())
        for live in list(self._live.values()):
            self._stop(live)

    def stop(self, attempt: Attempt) -> None:
        """Ask the supervisor of one attempt to end its process, as soon as there is one."""
        live = self._live.get(attempt.name)
        if live is not None:
            live.stopping = True
            self._stop(live)

    def close(self) -> None:
        """Let the zygote go. Supervisors go on."""
        self._loop.unwatch(self._zygote.channel.fileno())
        self._zygote.close()
        for live in self._live.values():
            self._detach(live)

    def _make_folder(self, folder: Folder) -> None:
        """One that is there already was never committed to, or its row went with a power cut."""
        if folder.path.exists():
            if settle(folder) is Standing.ALIVE:
                raise EngineError(f"{folder.path} is alive and unknown; was state.db removed?")
            shutil.rmtree(folder.path)
        folder.path.mkdir()

    def _make_zygote(self) -> Zygote:
        zygote = Zygote(self._runner, self._root / "supervisors.log")
        self._loop.watch(zygote.channel.fileno(), self._answered)
        return zygote

    def _pump(self) -> None:
        while self._outbox and len(self._unanswered) < _WINDOW:
            live = self._outbox.popleft()
            self._unanswered[str(live.folder.path)] = live
            self._asked_at = time.monotonic()
            self._watch_zygote()
            try:
                self._zygote.send(live.folder.path)
            except OSError:
                self._renew()
                return

    def _watch_zygote(self) -> None:
        if not self._watching:
            self._watching = True
            self._loop.after(_ZYGOTE_PATIENCE, self._check_zygote)

    def _check_zygote(self) -> None:
        """One that doesn't answer is as good as dead."""
        self._watching = False
        if not self._unanswered:
            return
        if time.monotonic() - self._asked_at >= _ZYGOTE_PATIENCE:
            self._renew()
        else:
            self._watch_zygote()

    def _renew(self) -> None:
        """The zygote died: what it hadn't answered for is settled by its folder."""
        self._deaths += 1
        if self._deaths > _ZYGOTE_DEATHS:
            raise EngineError(f"the zygote of {self._runner} died {self._deaths} times without starting anything")
        self._loop.unwatch(self._zygote.channel.fileno())
        self._zygote.close()
        self._zygote = self._make_zygote()
        unanswered, self._unanswered = self._unanswered, {}
        for live in unanswered.values():
            self._look(live)
        self._pump()

    def _answered(self) -> None:
        answer = self._zygote.receive()
        if answer is None:
            self._renew()
            return
        self._deaths = 0
        path, pid, pidfd = answer
        live = self._unanswered.pop(path, None)
        if live is not None:
            self.on_start(live.attempt)
            self._attach(live, pid, pidfd)
        elif pidfd is not None:
            os.close(pidfd)
        self._pump()

    def _attach(self, live: _Live, pid: int, pidfd: Optional[int]) -> None:
        live.pid, live.pidfd = pid, pidfd
        if pidfd is None:
            self._loop.after(_LOOK_AGAIN, lambda: self._look(live))
        else:
            self._loop.watch(pidfd, lambda: self._died(live))
        if self._stopping or live.stopping:
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
        if live.attempt.name not in self._live or live.pidfd is not None:
            return
        standing = settle(live.folder)
        if standing is Standing.ALIVE:
            self._attach(live, *self._find(live))
        else:
            self._over(live, standing)

    def _find(self, live: _Live) -> tuple[int, Optional[int]]:
        """(pid, pidfd) of a live supervisor; no pidfd when it hasn't told its pid yet, or just ended."""
        start = read_record(live.folder.start)
        if start is None:
            return live.pid, None
        pid = int(start["pid"])
        try:
            pidfd = os.pidfd_open(pid)
        except (AttributeError, OSError):
            return pid, None
        if settle(live.folder) is Standing.ALIVE:
            return pid, pidfd
        os.close(pidfd)
        return pid, None

    def _over(self, live: _Live, standing: Standing) -> None:
        del self._live[live.attempt.name]
        record = read_record(live.folder.exit) if standing is Standing.ENDED else None
        if record is None and standing is Standing.ENDED:
            standing = Standing.LOST
        clear = standing is not Standing.LOST or _sweep(live.attempt.nonce)
        seconds = None if record is None else float(record["seconds"])
        self._state.close_attempt(live.attempt, standing.value, seconds)
        self.on_end(Ending(live.attempt, standing, record, clear))

    def _stop(self, live: _Live) -> None:
        with contextlib.suppress(OSError):
            if live.pidfd is not None:
                signal.pidfd_send_signal(live.pidfd, signal.SIGTERM)
            elif live.pid and settle(live.folder) is Standing.ALIVE:
                os.kill(live.pid, signal.SIGTERM)


def _sweep(nonce: str) -> bool:
    """Kill what a lost attempt left, and see it gone, before anyone may try again."""
    mark = b"WIDELANE_ATTEMPT=" + nonce.encode()
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        left = processes.marked(mark)
        if not left:
            return True
        processes.signal_all(left, signal.SIGKILL)
        time.sleep(0.01)
    return False
