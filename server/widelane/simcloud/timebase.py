"""The cloud's own time: simulated seconds since it began, and what they are called in UTC."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from widelane.simcloud.state import State

_FACT = "clock"


class Timebase(Protocol):
    """The engine's clock; tests give their own."""

    @property
    def rate(self) -> float:
        """Simulated seconds per real one."""
        ...

    @property
    def began(self) -> datetime:
        """Simulated time in UTC at second 0."""
        ...

    def elapsed(self) -> float:
        """Simulated seconds since the cloud began; never goes back."""
        ...

    def skip(self, seconds: float) -> None:
        """Jump ahead."""
        ...


class RatedTime:
    """Real time at a rate. Goes on while the server is down: its start is kept in the state."""

    def __init__(
        self,
        state: State,
        rate: float,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._state = state
        self._rate = rate
        self._steady = steady
        fact = state.facts.get(_FACT)
        if fact is None:
            fact = {"wall": wall(), "skipped": 0.0}
            state.set_fact(_FACT, fact)
        self._fact: dict[str, float] = fact
        self._base = max(0.0, (wall() - self._fact["wall"]) * rate)
        self._since = steady()

    @property
    def rate(self) -> float:
        """Simulated seconds per real one."""
        return self._rate

    @property
    def began(self) -> datetime:
        """Simulated time in UTC at second 0: the real time at which the state was made."""
        return datetime.fromtimestamp(self._fact["wall"], UTC)

    def elapsed(self) -> float:
        """Simulated seconds since the cloud began."""
        return self._base + (self._steady() - self._since) * self._rate + self._fact["skipped"]

    def skip(self, seconds: float) -> None:
        """Jump ahead; durable at the state's next commit."""
        self._fact = {**self._fact, "skipped": self._fact["skipped"] + seconds}
        self._state.set_fact(_FACT, self._fact)


def stamp(began: datetime, elapsed: float) -> str:
    """RFC 3339 with milliseconds, as the API writes times."""
    return (began + timedelta(seconds=elapsed)).isoformat(timespec="milliseconds")
