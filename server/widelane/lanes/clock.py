"""This machine's own clock. A simulated cloud brings its own, which is given to the lane instead."""

from __future__ import annotations

import time
from datetime import UTC, datetime


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
