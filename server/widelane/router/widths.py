"""Wall clock, efficiency and stranded GPUs at each width, quantised by units, with what binds each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from widelane.models.verdict import Economics, WidthRow
from widelane.router.schedule import EXACT_UNITS, count_of, dealt_hours, lower_bound, run_hours
from widelane.router.spot import Spot, daly_interval
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


def rows(work: Work, cells: Mapping[int, Cell], spot: Spot) -> tuple[WidthRow, ...]:
    """The cells as reported, narrowest first."""
    found: list[WidthRow] = []
    before: Cell | None = None
    for cell in cells.values():
        found.append(_row(work, cell, before, spot))
        before = cell
    return tuple(found)


def economics(work: Work, spot: Spot, write_hours: float | None) -> Economics | None:
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
        longest_unit_hours=round(max([hours for _, hours in work.segments], default=0.0), 4),
        speedup_cap=round((fixed + work.total) / fixed, 2) if counts else None,
        saturation_width=saturation,
        checkpoint_minutes=None if not write_hours else round(daly_interval(write_hours, spot.mean) * 60, 1),
    )


def static_hours(work: Work, shards: int) -> float | None:
    """Run hours when the units are dealt out before; None when there is nothing to deal."""
    segments = work.segments
    if not segments or work.mode not in _SPREAD or work.units < 2:
        return None
    if count_of(segments) > EXACT_UNITS and len(segments) > 1:
        return dealt_hours(segments, shards)
    return run_hours(segments, shards, work.reloads, static=True)


def pulled_hours(work: Work, shards: int) -> float:
    """Run hours when each free group pulls the next unit, whatever the command does."""
    return run_hours(work.segments or (), shards, work.reloads)


def _row(work: Work, cell: Cell, before: Cell | None, spot: Spot) -> WidthRow:
    fixed = work.setup + work.tail
    dealt = static_hours(work, cell.shards)
    spotted = _spot_hours(work, cell, spot)
    places = cell.shards * cell.waves
    return WidthRow(
        width=cell.width,
        wall_hours=round(cell.hours, 4),
        efficiency=round(cell.efficiency, 4),
        stranded_gpus=cell.stranded,
        shards=cell.shards,
        waves=cell.waves,
        binding=_binding(work, cell),
        bound_hours=round(fixed + max(_bound(work, cell), work.floor_hours), 4),
        fill=round(work.units / places, 4) if work.mode in _SPREAD and places and work.units > 1 else 1.0,
        saves_minutes=round((before.hours - cell.hours) * 60, 1) if before is not None else 0.0,
        static_hours=None if dealt is None else round(fixed + max(dealt, work.floor_hours), 4),
        spot_hours=None if spotted is None else round(spotted, 4),
    )


def _bound(work: Work, cell: Cell) -> float:
    """Hours that no order of the units beats; for work that doesn't spread, what it takes."""
    if work.mode not in _SPREAD or work.units < 2 or not work.segments:
        return cell.bare
    return lower_bound(work.segments, cell.shards)


def _binding(work: Work, cell: Cell) -> str:
    """The part of the wall clock that is longest, and within the run what makes it so long."""
    run, reload = cell.run, max(cell.run - max(cell.bare, work.floor_hours), 0.0)
    if work.setup > max(run - reload, reload, work.tail):
        return "setup"
    if work.tail > max(run - reload, reload):
        return "tail"
    if reload > run - reload:
        return "reload"
    return _run_binding(work, cell)


def _run_binding(work: Work, cell: Cell) -> str:
    """What makes the run as long as it is."""
    if (work.floor_hours and cell.run <= work.floor_hours) or (work.cap is not None and cell.shards >= work.cap):
        return "waiver"
    if work.mode not in _SPREAD:
        return "command" if work.mode is Mode.SINGLE or work.fixed is not None else "work"
    even = work.total / cell.shards * (1 + 1e-9) if cell.shards else 0.0
    if cell.shards < 2 or cell.bare <= even:
        return "units" if cell.shards == work.units > 1 else "work"
    longest = max([hours for _, hours in work.segments or ()], default=0.0)
    return "longest_unit" if cell.bare <= longest * (1 + 1e-9) else "waves"


def _spot_hours(work: Work, cell: Cell, spot: Spot) -> float | None:
    """Expected hours on a machine that is taken away; the first set-up is paid once, later ones after each loss."""
    if cell.hours == 0:
        return 0.0
    parts = [(1, cell.run)] if work.restarts or work.mode not in _SPREAD or work.units < 2 else work.segments or ()
    work_hours = sum([count * hours for count, hours in parts])
    expected = 0.0
    for count, hours in parts:
        each = spot.repeated(hours) if work.checkpoint is None else spot.checkpointed(hours, *work.checkpoint)
        if each is None:
            return None
        expected += count * each
    tail = spot.repeated(work.tail)
    if tail is None:
        return None
    return work.setup + cell.run * (expected / work_hours if work_hours else 1.0) + tail


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
    if work.mode not in _SPREAD or not work.segments:
        return work.total
    found = work.reloads if reloads else ()
    return run_hours(work.segments, groups, found, static=work.mode is Mode.STATIC)


def _busy(work: Work, width: int, shards: int) -> int:
    """GPUs that have a unit in the first wave."""
    if work.mode is Mode.LAUNCHER:
        return min(width, work.fixed) if work.fixed is not None else width - width % work.group
    return shards * work.group
