"""What preemptions cost: expected hours on a machine that is taken away at random, on average every `mean` hours."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, sqrt

_HOPELESS = 30.0
"""Exponent above which work would hardly ever end between two preemptions."""


@dataclass(frozen=True, slots=True)
class Spot:
    """`mean` hours between preemptions of one machine, and `down` hours from one until its work starts again.

    Whole machines are taken: all groups on it stop at once. Waiting for the next machine is not in `down`.
    """

    mean: float
    down: float

    def repeated(self, hours: float) -> float | None:
        """Expected hours of work that starts from its beginning after each preemption; None when it hardly ends."""
        if hours / self.mean > _HOPELESS:
            return None
        return (self.mean + self.down) * expm1(hours / self.mean)

    def checkpointed(self, hours: float, interval: float, write: float) -> float | None:
        """Expected hours of work that goes on from its last checkpoint, one every `interval` hours of work."""
        if interval >= hours:
            return self.repeated(hours)
        if (interval + write + self.down) / self.mean > _HOPELESS:
            return None
        return self.mean * exp(self.down / self.mean) * expm1((interval + write) / self.mean) * hours / interval


def young_interval(write: float, mean: float) -> float:
    """The first-order interval between checkpoints: sqrt(2 d M)."""
    return sqrt(2 * write * mean)


def daly_interval(write: float, mean: float) -> float:
    """The interval between checkpoints that loses least: Daly 2006, the higher-order estimate."""
    if write >= 2 * mean:
        return mean
    part = write / (2 * mean)
    return sqrt(2 * write * mean) * (1 + sqrt(part) / 3 + part / 9) - write
