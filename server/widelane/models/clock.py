"""The clock that everything with a deadline is given. Implementations live at the edge."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time in UTC, elapsed seconds, and how fast they pass."""

    @property
    def rate(self) -> float:
        """Seconds of this clock per second of the machine's (1 unless simulated)."""
        ...

    def now(self) -> datetime:
        """The time in UTC."""
        ...

    def elapsed(self) -> float:
        """Seconds since an arbitrary start; never goes back."""
        ...
