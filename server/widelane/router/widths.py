"""Wall clock, efficiency and stranded GPUs at each width, quantised by units."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from widelane.models.verdict import WidthRow
from widelane.router.work import Mode, Work

_EXACT_UNITS = 20_000
"""Above this many unequal units the schedule is bounded instead of simulated; the error is one unit at most."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one width gives, unrounded. `hours` is set-up, run and tail; waiting for a machine is not in it."""

    width: int
    hours: float
    efficiency: float
    stranded: int
    shards: int
    waves: int

    def row(self) -> WidthRow:
        """As reported."""
        return WidthRow(
            width=self.width,
            wall_hours=round(self.hours, 4),
            efficiency=round(self.efficiency, 4),
            stranded_gpus=self.stranded,
            shards=self.shards,
            waves=self.waves,
        )


def cell(work: Work, width: int) -> Cell | None:
    """The numbers of one width; None without an estimate or when the width holds no group."""
    if work.segments is None or width < work.group:
        return None
    run, shards, waves = _run(work, width)
    hours = work.setup + max(run, work.floor_hours) + work.tail
    useful = work.total * work.group
    held = width * hours
    busy = _busy(work, width, shards)
    return Cell(width, hours, useful / held if held else 1.0, width - busy, shards, waves)


def _run(work: Work, width: int) -> tuple[float, int, int]:
    """(hours of all units, groups at work, waves)."""
    groups = width // work.group
    if work.cap is not None:
        groups = min(groups, work.cap)
    if work.mode is Mode.SINGLE:
        return work.total, 1, work.units
    if work.mode is Mode.LAUNCHER:
        if work.fixed is None:
            return work.total * work.group / width, groups, 1
        return work.total * work.group / work.fixed, max(1, work.fixed // work.group), 1
    if work.mode is Mode.STATIC and work.units == 1:
        return work.total / groups, groups, 1
    groups = max(1, min(groups, work.units))
    waves = -(-work.units // groups)
    segments = work.segments or ()
    if len(segments) == 1:
        return waves * segments[0][1], groups, waves
    return _schedule(segments, groups, static=work.mode is Mode.STATIC), groups, waves


def _busy(work: Work, width: int, shards: int) -> int:
    """GPUs that have a unit in the first wave."""
    if work.mode is Mode.LAUNCHER:
        return min(width, work.fixed) if work.fixed is not None else width - width % work.group
    return shards * work.group


def _schedule(segments: tuple[tuple[int, float], ...], groups: int, *, static: bool) -> float:
    """Hours until the last unit ends when each free group pulls the next one (or has its share fixed before)."""
    count = sum(number for number, _ in segments)
    if count > _EXACT_UNITS:
        total = sum(number * hours for number, hours in segments)
        longest = max(hours for _, hours in segments)
        return max(total / groups + longest * (1 - 1 / groups), longest)
    ends = [0.0] * groups
    if static:
        units = (hours for number, hours in segments for _ in range(number))
        for index, hours in enumerate(units):
            ends[index % groups] += hours
        return max(ends)
    for number, hours in segments:
        for _ in range(number):
            heapq.heapreplace(ends, ends[0] + hours)
    return max(ends)
