"""Whose machine a phase keeps: that of the first phase of its chain of holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from widelane.models.plan import Phase


def held_widths(phases: tuple[Phase, ...], width_of: Callable[[int], int]) -> Mapping[str, int]:
    """By phase that holds: the width of the machine that it keeps. `width_of` gives that of the phase at an index."""
    if not any(phase.hold for phase in phases):
        return {}
    places = {phase.name: index for index, phase in enumerate(phases)}
    held: dict[str, int] = {}
    for start in range(len(phases)):
        index: int | None = start
        chain: list[str] = []
        seen: set[str] = set()
        while (
            index is not None
            and phases[index].hold
            and phases[index].name not in seen
            and phases[index].name not in held
        ):
            chain.append(phases[index].name)
            seen.add(phases[index].name)
            index = _before(phases, index, places)
        if chain and index is not None:
            name = phases[index].name
            width = held.get(name, 0) if phases[index].hold else width_of(index)
            held.update(dict.fromkeys(chain, width))
    return held


def _before(phases: tuple[Phase, ...], index: int, places: Mapping[str, int]) -> int | None:
    """The phase whose machine is kept: the last one in `after`, else the one above."""
    after = phases[index].after
    if after:
        return places.get(after[-1])
    return index - 1 if index else None
