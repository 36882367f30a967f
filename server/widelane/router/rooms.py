"""Fits a ladder to what the machines of lanes without tables hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from widelane.facts import Policy
from widelane.models.room import LaneRoom
from widelane.models.verdict import PhaseVerdict, Rung, WidthRow


def fit_rooms(
    ladder: Iterable[Rung], rooms: Mapping[str, LaneRoom], phase: PhaseVerdict, policy: Policy
) -> tuple[Rung, ...]:
    """The ladder with each rung of a lane in `rooms` in place of itself at every width that the lane holds.

    They go from the asked width, or the widest below it that the lane holds, down to the least of the phase. A width
    at which the work takes longer than the lane allows is left out. Lanes that are not in `rooms` stay as they are.
    """
    fitted: list[Rung] = []
    taken: set[tuple[str, int]] = set()
    for rung in ladder:
        room = rooms.get(rung.lane)
        if room is None:
            fitted.append(rung)
            continue
        for width in _widths(rung, room, phase, policy):
            if (rung.lane, width) not in taken:
                taken.add((rung.lane, width))
                fitted.append(rung if width == rung.width else rung.model_copy(update={"width": width}))
    return tuple(fitted)


def _widths(rung: Rung, room: LaneRoom, phase: PhaseVerdict, policy: Policy) -> list[int]:
    """Widest first. Without an estimate the policy's widths are the ones to choose from, and none takes too long."""
    rows = {row.width: row for row in phase.widths}
    known = rows or dict.fromkeys(policy.widths)
    most = rung.width if room.gpus is None else min(rung.width, room.gpus)
    least, group = max(1, phase.min_width), max(1, phase.gpus_per_shard)
    if room.gpus is None:
        candidates = {rung.width}
    else:
        candidates = {width for width in {*known, rung.width} if least <= width <= most and width % group == 0}
    return sorted((width for width in candidates if _in_time(rows.get(width), room)), reverse=True)


def _in_time(row: WidthRow | None, room: LaneRoom) -> bool:
    return row is None or room.seconds is None or row.wall_hours * 3600 <= room.seconds
