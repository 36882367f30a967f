"""The rows of a verdict: what each width gives, what it is bound by, and what it would be otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from widelane.models.verdict import Economics, WidthRow
from widelane.router.bench import Bench
from widelane.router.schedule import lower_bound
from widelane.router.spot import Spot
from widelane.router.widths import Cell, cell, economics, longest_of, spreads, static_hours
from widelane.router.work import Mode, Work

_REMEMBERED_SEGMENTS = 64


@dataclass(frozen=True, slots=True)
class Sheet:
    """All widths of one piece of work."""

    cells: Mapping[int, Cell]
    rows: tuple[WidthRow, ...]
    economics: Economics | None


def width_sheet(bench: Bench, work: Work, widths: tuple[int, ...], spot: Spot) -> Sheet:
    """The sheet of a work at some widths, narrowest first; works with the same numbers share one."""
    if work.segments is not None and len(work.segments) > _REMEMBERED_SEGMENTS:
        return _sheet(work, widths, spot)
    key = (work.numbers, widths)
    found: Sheet | None = bench.sheets.get(key)
    if found is None:
        found = _sheet(work, widths, spot)
        bench.keep_sheet(key, found)
    return found


def _sheet(work: Work, widths: tuple[int, ...], spot: Spot) -> Sheet:
    cells = {width: found for width in widths if (found := cell(work, width)) is not None}
    return Sheet(cells, _rows(work, cells, spot), economics(work))


@dataclass(frozen=True, slots=True)
class _Work:
    """What the rows of one work share. `slow` is the factor by which preemptions stretch its units; inf: for ever."""

    work: Work
    fixed: float
    spread: bool
    even: bool
    longest: float
    spot: Spot
    slow: float
    tail: float


def _rows(work: Work, cells: Mapping[int, Cell], spot: Spot) -> tuple[WidthRow, ...]:
    if work.segments is None:
        return ()
    spread = spreads(work)
    even = spread and len(work.segments) == 1 and not work.reloads
    slow = _slow(work, spot) if spread and not work.restarts else 0.0
    tail = spot.repeated(work.tail)
    shared = _Work(
        work,
        work.setup + work.tail,
        spread,
        even,
        longest_of(work),
        spot,
        slow,
        inf if tail is None else tail,
    )
    found: list[WidthRow] = []
    before: Cell | None = None
    for one in cells.values():
        found.append(_row(shared, one, before))
        before = one
    return tuple(found)


def _row(shared: _Work, one: Cell, before: Cell | None) -> WidthRow:
    work, floor = shared.work, shared.work.floor_hours
    # Equal units take whole waves, pulled or dealt, and nothing beats that.
    bound = one.bare if shared.even or not shared.spread else lower_bound(work.segments or (), one.shards)
    dealt = one.run if shared.even else static_hours(work, one.shards)
    spotted = _spot_hours(shared, one)
    return WidthRow(
        width=one.width,
        wall_hours=round(one.hours, 4),
        efficiency=round(one.efficiency, 4),
        stranded_gpus=one.stranded,
        shards=one.shards,
        waves=one.waves,
        binding=_binding(shared, one),
        bound_hours=round(shared.fixed + max(bound, floor), 4),
        fill=round(work.units / (one.shards * one.waves), 4) if shared.spread else 1.0,
        saves_minutes=round((before.hours - one.hours) * 60, 1) if before is not None else 0.0,
        static_hours=None if dealt is None else round(shared.fixed + max(dealt, floor), 4),
        spot_hours=None if spotted is None else round(spotted, 4),
    )


def _binding(shared: _Work, one: Cell) -> str:
    """The part of the wall clock that is longest, and within the run what makes it so long."""
    work = shared.work
    reload = max(one.run - max(one.bare, work.floor_hours), 0.0) if work.reloads else 0.0
    rest = one.run - reload
    if work.setup > rest and work.setup > reload and work.setup > work.tail:
        return "setup"
    if work.tail > rest and work.tail > reload:
        return "tail"
    return "reload" if reload > rest else _run_binding(shared, one)


def _run_binding(shared: _Work, one: Cell) -> str:
    """What makes the run as long as it is."""
    work = shared.work
    if (work.floor_hours and one.run <= work.floor_hours) or (work.cap is not None and one.shards >= work.cap):
        return "waiver"
    if work.mode not in (Mode.UNITS, Mode.STATIC):
        return "command" if work.mode is Mode.SINGLE or work.fixed is not None else "work"
    if one.shards < 2 or one.bare <= work.total / one.shards * (1 + 1e-9):
        return "units" if one.shards == work.units > 1 else "work"
    return "longest_unit" if one.bare <= shared.longest * (1 + 1e-9) else "waves"


def _slow(work: Work, spot: Spot) -> float:
    """By how much preemptions stretch units that each start from their beginning, or from a checkpoint."""
    expected = 0.0
    for count, hours in work.segments or ():
        each = _alone(work, hours, spot)
        if each is None:
            return inf
        expected += count * each
    return expected / work.total if work.total else 1.0


def _alone(work: Work, hours: float, spot: Spot) -> float | None:
    if work.checkpoint is None:
        return spot.repeated(hours)
    return spot.checkpointed(hours, *work.checkpoint)


def _spot_hours(shared: _Work, one: Cell) -> float | None:
    """Expected hours on a machine that is taken away; the first set-up is paid once, later ones after each loss."""
    work = shared.work
    if shared.slow:
        run = one.run * shared.slow
    else:
        whole = _alone(work, one.run, shared.spot)
        run = inf if whole is None else whole
    total = work.setup + run + shared.tail
    return None if total == inf else total
