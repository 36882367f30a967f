"""When the last unit ends: pulled by whichever group is free, or dealt out before; and what no order can beat.

Units come as segments: (count, hours) in the order in which they are pulled.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt

Segments = Sequence[tuple[int, float]]

EXACT_UNITS = 20_000
"""Above this many unequal units the schedule is bounded instead of simulated; the error is one unit at most."""


@dataclass(frozen=True, slots=True)
class Reload:
    """What a group pays when its next unit has another value of an axis. `stride` units in a row share a value."""

    stride: int
    size: int
    hours: float

    def value(self, index: int) -> int:
        """The place of the axis value of one unit."""
        return index // self.stride % self.size


def run_hours(segments: Segments, groups: int, reloads: Sequence[Reload] = (), *, static: bool = False) -> float:
    """Hours until the last unit ends when each free group pulls the next one (or has its share fixed before)."""
    count = count_of(segments)
    if not reloads and len(segments) == 1:
        return -(-count // groups) * segments[0][1]
    if count > EXACT_UNITS:
        return _estimate(segments, groups, static=static) + sum(changes(count, groups, r) * r.hours for r in reloads)
    if not reloads and not static:
        return _pulled(segments, groups)
    return _loaded(segments, groups, reloads, static=static)


def lower_bound(segments: Segments, groups: int) -> float:
    """Hours that no order of the units on `groups` groups can beat."""
    count = count_of(segments)
    if count == 0:
        return 0.0
    if len(segments) == 1:
        # Equal units can't do better than whole waves.
        return -(-count // groups) * segments[0][1]
    total = sum(number * hours for number, hours in segments)
    bound = max([total / groups, *(hours for _, hours in segments)])
    if count <= groups:
        return bound
    # Two of the groups + 1 longest units share a group.
    return max(bound, _ranked(segments, groups) + _ranked(segments, groups + 1))


def upper_bound(segments: Segments, groups: int) -> float:
    """Hours that pulling never exceeds, in any order."""
    total = sum(number * hours for number, hours in segments)
    longest = max((hours for _, hours in segments), default=0.0)
    return max(total / groups + longest * (1 - 1 / groups), longest)


def dealt_hours(segments: Segments, groups: int) -> float:
    """Expected hours when units of these times are dealt out in equal numbers, in an order that nobody knows."""
    count = count_of(segments)
    mean = sum(number * hours for number, hours in segments) / count
    share = -(-count // groups)
    if groups == 1 or mean == 0:
        return share * mean
    return share * mean * (1 + spread(segments) * sqrt(2 * log(groups) / share))


def spread(segments: Segments) -> float:
    """Coefficient of variation of the unit times."""
    count = count_of(segments)
    mean = sum(number * hours for number, hours in segments) / count
    if mean == 0 or len(segments) == 1:
        return 0.0
    return sqrt(sum(number * (hours - mean) ** 2 for number, hours in segments) / count) / mean


def changes(count: int, groups: int, reload: Reload) -> int:
    """The most often that one group changes its value of an axis, when units are pulled in order."""
    own = -(-count // groups)
    return max(0, min(own, -(-count // reload.stride)) - 1) if reload.size > 1 else 0


def count_of(segments: Segments) -> int:
    """How many units."""
    return sum([number for number, _ in segments])


def _ranked(segments: Segments, rank: int) -> float:
    """The hours of the unit that is at `rank` when the longest is first."""
    for number, hours in sorted(segments, key=lambda segment: -segment[1]):
        rank -= number
        if rank <= 0:
            return hours
    return 0.0


def _each(segments: Segments) -> Iterator[float]:
    for number, hours in segments:
        for _ in range(number):
            yield hours


def _estimate(segments: Segments, groups: int, *, static: bool) -> float:
    return dealt_hours(segments, groups) if static else upper_bound(segments, groups)


def _pulled(segments: Segments, groups: int) -> float:
    ends = [0.0] * groups
    for number, hours in segments:
        for _ in range(number):
            heapq.heapreplace(ends, ends[0] + hours)
    return max(ends)


def _loaded(segments: Segments, groups: int, reloads: Sequence[Reload], *, static: bool) -> float:
    """As pulled or dealt, with each group paying for every change of an axis value; its first is in the set-up."""
    ends = [(0.0, group) for group in range(groups)]
    loaded: list[tuple[int, ...] | None] = [None] * groups
    for index, hours in enumerate(_each(segments)):
        end, group = ends[index % groups] if static else ends[0]
        values = tuple([reload.value(index) for reload in reloads])
        before = loaded[group]
        if before is not None and before != values:
            end += sum([r.hours for r, old, new in zip(reloads, before, values, strict=True) if old != new])
        loaded[group] = values
        if static:
            ends[index % groups] = (end + hours, group)
        else:
            heapq.heapreplace(ends, (end + hours, group))
    return max(end for end, _ in ends)
