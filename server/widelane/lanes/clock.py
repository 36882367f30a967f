"""The clocks of lanes: this machine's, and that of a simulated cloud."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_READ_SECONDS = 5.0


class SystemClock:
    """Wall time and monotonic seconds of this machine."""

    @property
    def rate(self) -> float:
        """Always 1."""
        return 1.0

    def now(self) -> datetime:
        """The time in UTC."""
        return datetime.now(UTC)

    def elapsed(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()


@dataclass(frozen=True, slots=True)
class _Reading:
    now: datetime
    elapsed: float
    rate: float
    at: float
    """Monotonic seconds of this machine when it was read."""


class RemoteClock:
    """The clock of a simulated cloud, read from it and extrapolated in between.

    It is read again after `fresh_seconds` of this machine's time, since a simulation can be put forward. While the
    server can't be asked, the last reading goes on; without any reading, this machine's own time stands in.
    """

    def __init__(
        self, url: str, *, fresh_seconds: float = 1.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = f"{url.rstrip('/')}/sim/clock"
        self._fresh_seconds = fresh_seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._reading = _Reading(datetime.now(UTC), 0.0, 1.0, monotonic())
        self._tried = float("-inf")
        self._highest = float("-inf")

    @property
    def rate(self) -> float:
        """Simulated seconds per second."""
        return self._read().rate

    def now(self) -> datetime:
        """The simulated time in UTC."""
        reading = self._read()
        return reading.now + timedelta(seconds=(self._monotonic() - reading.at) * reading.rate)

    def elapsed(self) -> float:
        """Simulated seconds since the simulation began; never goes back."""
        reading = self._read()
        seconds = reading.elapsed + (self._monotonic() - reading.at) * reading.rate
        with self._lock:
            self._highest = max(self._highest, seconds)
            return self._highest

    def _read(self) -> _Reading:
        with self._lock:
            if self._monotonic() - self._tried >= self._fresh_seconds:
                self._reading = self._ask() or self._reading
                self._tried = self._monotonic()
            return self._reading

    def _ask(self) -> _Reading | None:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(self._url, timeout=_READ_SECONDS) as answer:
                told = json.loads(answer.read())
            return _Reading(
                now=datetime.fromisoformat(told["now"]),
                elapsed=float(told["elapsed"]),
                rate=float(told["rate"]),
                at=self._monotonic(),
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None
