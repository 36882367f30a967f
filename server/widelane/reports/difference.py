"""The answer of diff as text: a line for what changed, nothing for what didn't."""

from __future__ import annotations

from collections.abc import Iterator

from widelane.models.difference import PhaseDifference, PhaseNumbers, PlanDifference, PlanNumbers
from widelane.reports.clean import clean_line
from widelane.reports.findings import verdict_word
from widelane.reports.paper import Paper, duration

_SAME = "nothing changed"


def difference_report(difference: PlanDifference, paper: Paper) -> str:
    """Both plans as a whole, then each phase that differs."""
    before, after = difference.before, difference.after
    lines = [f"{verdict_word(before.verdict, paper)} -> {verdict_word(after.verdict, paper)}"]
    lines += [f"  {line}" for line in _amounts(before, after, always=True)]
    for phase in difference.phases:
        told = list(_phase(phase, paper))
        if told:
            lines += ["", *told]
    if not any(phase.changed or None in (phase.before, phase.after) for phase in difference.phases):
        lines += ["", _SAME]
    return "\n".join(lines) + "\n"


def _phase(phase: PhaseDifference, paper: Paper) -> Iterator[str]:
    name = paper.paint(clean_line(phase.name), "strong")
    if phase.before is None or phase.after is None:
        one = phase.after if phase.before is None else phase.before
        if one is not None:
            word = "added" if phase.before is None else "removed"
            yield f"{name}  {word}: width {one.width}, {_hours(one.wall_hours)}, {_gpu_hours(one.gpu_hours)}"
        return
    if not phase.changed:
        return
    yield f"{name}  {verdict_word(phase.before.verdict, paper)} -> {verdict_word(phase.after.verdict, paper)}"
    if phase.before.width != phase.after.width:
        yield f"  {'width':12}{phase.before.width} -> {phase.after.width}"
    yield from (f"  {line}" for line in _amounts(phase.before, phase.after, always=False))
    yield from (f"  {'rung gone':12}{rung}" for rung in phase.before.rungs if rung not in phase.after.rungs)
    yield from (f"  {'rung new':12}{rung}" for rung in phase.after.rungs if rung not in phase.before.rungs)
    if set(phase.before.rungs) == set(phase.after.rungs) and phase.before.rungs != phase.after.rungs:
        yield f"  {'rungs':12}the same in another order"


def _amounts(before: PlanNumbers | PhaseNumbers, after: PlanNumbers | PhaseNumbers, *, always: bool) -> Iterator[str]:
    rows = (
        ("wall clock", before.wall_hours, after.wall_hours, _hours),
        ("GPUs held", before.gpu_hours, after.gpu_hours, _gpu_hours),
        ("paid lane", before.paid_gpu_hours, after.paid_gpu_hours, _at_most),
    )
    for label, old, new, said in rows:
        if old != new:
            yield f"{label:12}{said(old)} -> {said(new)}"
        elif always:
            yield f"{label:12}{said(old)}"


def _hours(hours: float | None) -> str:
    return "unknown" if hours is None else duration(hours)


def _gpu_hours(hours: float | None) -> str:
    return "unknown" if hours is None else f"{hours:.4g} GPU-h"


def _at_most(hours: float | None) -> str:
    return "unknown" if hours is None else f"at most {hours:.4g} GPU-h" if hours else "never"
