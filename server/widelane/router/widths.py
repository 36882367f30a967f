"""Wall clock, efficiency and stranded GPUs at each width, quantised by units, with what binds each."""

from __future__ import annotations

from dataclasses import dataclass

from widelane.models.verdict import Economics
from widelane.router.schedule import EXACT_UNITS, count_of, dealt_hours, run_hours
from widelane.router.work import Mode, Work

_SPREAD = (Mode.UNITS, Mode.STATIC)


@dataclass(frozen=True, slots=True)
class Cell:
    """What one width gives, unrounded. `hours` is set-up, run and tail; waiting for a machine is not in it.

    `run` is without set-up and tail; `bare` is `run` without reloads.
    """

    width: int
    hours: float
    efficiency: float
    stranded: int
    shards: int
    waves: int
    run: float = 0.0
    bare: float = 0.0


def cell(work: Work, width: int) -> Cell | None:
    """The numbers of one width; None without an estimate or when the width holds no group."""
    if work.segments is None or width < work.group:
        return None
    run, shards, waves = _run(work, width)
    bare = _pulls(work, shards, reloads=False) if work.reloads else run
    run = max(run, work.floor_hours)
    hours = work.setup + run + work.tail
    useful = work.total * work.group
    held = width * hours
    busy = _busy(work, width, shards)
    return Cell(width, hours, useful / held if held else 1.0, width - busy, shards, waves, run, bare)


def economics(work: Work) -> Economics | None:
    """What holds at every width; None without an estimate."""
    if work.segments is None:
        return None
    fixed = work.setup + work.tail
    usable = work.usable
    # Less than a millisecond of set-up is none: its quotient would be no count of GPUs.
    counts = fixed > 1e-7
    saturation = max(int(work.total / fixed + 1e-9), 1) * work.group if counts else None
    if saturation is not None and usable is not None:
        saturation = min(saturation, max(usable, work.group))
    return Economics(
        work_hours=round(work.total, 4),
        longest_unit_hours=round(longest_of(work), 4),
        speedup_cap=round((fixed + work.total) / fixed, 2) if counts else None,
        saturation_width=saturation,
    )


def longest_of(work: Work) -> float:
    """Hours of the longest unit."""
    return max([hours for _, hours in work.segments or ()], default=0.0)


def spreads(work: Work) -> bool:
    """Whether there are units to pull or to deal."""
    return work.mode in _SPREAD and work.units > 1


def static_hours(work: Work, shards: int) -> float | None:
    """Run hours when the units are dealt out before; None when there is nothing to deal."""
    segments = work.segments
    if not segments or not spreads(work):
        return None
    if count_of(segments) > EXACT_UNITS and len(segments) > 1:
        return dealt_hours(segments, shards)
    return run_hours(segments, shards, work.reloads, static=True)


def pulled_hours(work: Work, shards: int) -> float:
    """Run hours when each free group pulls the next unit, whatever the command does."""
    return run_hours(work.segments or (), shards, work.reloads)


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
    return _pulls(work, groups, reloads=True), groups, -(-work.units // groups)


def _pulls(work: Work, groups: int, *, reloads: bool) -> float:
    segments = work.segments
    if work.mode not in _SPREAD or not segments:
        return work.total
    if len(segments) == 1 and not work.reloads:
        return -(-segments[0][0] // groups) * segments[0][1]
    found = work.reloads if reloads else ()
    return run_hours(segments, groups, found, static=work.mode is Mode.STATIC)


def _busy(work: Work, width: int, shards: int) -> int:
    """GPUs that have a unit in the first wave."""
    if work.mode is Mode.LAUNCHER:
        return min(width, work.fixed) if work.fixed is not None else width - width % work.group
    return shards * work.group
