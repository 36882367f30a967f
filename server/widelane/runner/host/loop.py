"""The event loop of the scheduler: descriptors, timers, and calls posted from worker threads. Idle means asleep."""

from __future__ import annotations

import collections
import contextlib
import heapq
import itertools
import os
import selectors
import signal
import time
from typing import Callable, Optional

Callback = Callable[[], None]


class Stop:
    """Whether someone asked this process to stop. Made once a process, in the main thread; it outlives loops."""

    def __init__(self) -> None:
        self.asked = False
        self.wake: Optional[Callback] = None
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._ask)

    def _ask(self, signum: int, frame: object) -> None:
        self.asked = True
        if self.wake is not None:
            self.wake()


class Loop:
    """One thread runs it; `post` and `wake` alone may be called from others."""

    def __init__(self, stop: Stop) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Callback]] = []
        self._order = itertools.count()
        self._posted: collections.deque[Callback] = collections.deque()
        self._wake, self._woken = os.pipe()
        for fd in (self._wake, self._woken):
            os.set_blocking(fd, False)
        self._selector.register(self._wake, selectors.EVENT_READ, self._drain)
        self._stop = stop
        stop.wake = self.wake

    def watch(self, fd: int, callback: Callback) -> None:
        """Call back whenever `fd` is readable."""
        self._selector.register(fd, selectors.EVENT_READ, callback)

    def unwatch(self, fd: int) -> None:
        """Stop watching."""
        self._selector.unregister(fd)

    def after(self, seconds: float, callback: Callback) -> None:
        """Call back once, on the monotonic clock."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), callback))

    def post(self, callback: Callback) -> None:
        """Call back in the loop's thread, soon."""
        self._posted.append(callback)
        self.wake()

    def wake(self) -> None:
        """Make another turn."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._woken, b"\0")

    def run(self, turn: Callable[[], bool]) -> None:
        """Wait for events and deliver them, then call `turn`; until that says that all is done."""
        while not turn():
            for key, _ in self._selector.select(self._patience()):
                key.data()
            while self._posted:
                self._posted.popleft()()
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                heapq.heappop(self._timers)[2]()

    def close(self) -> None:
        """Give the descriptors back."""
        self._stop.wake = None
        self._selector.close()
        os.close(self._wake)
        os.close(self._woken)

    def _patience(self) -> Optional[float]:
        if self._posted:
            return 0.0
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake, 4096):
                pass
