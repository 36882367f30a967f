"""Compares the verdicts on two plans: width, wall clock, GPU-hours, rungs, and what a paid lane may be held for."""

from __future__ import annotations

from collections.abc import Iterable

from widelane.facts import Policy
from widelane.models.difference import PhaseDifference, PhaseNumbers, PlanDifference, PlanNumbers
from widelane.models.plan import Phase, Plan
from widelane.models.verdict import PhaseVerdict, PlanVerdict, Rung


def compare(old: tuple[Plan, PlanVerdict], new: tuple[Plan, PlanVerdict], policy: Policy) -> PlanDifference:
    """What changes from the old plan to the new one; phases are the same when their names are."""
    before, after = (_phases(verdict, policy) for _, verdict in (old, new))
    names = [*after, *(name for name in before if name not in after)]
    return PlanDifference(
        before=_whole(*old, before),
        after=_whole(*new, after),
        phases=tuple(_difference(name, before.get(name), after.get(name)) for name in names),
    )


def _phases(verdict: PlanVerdict, policy: Policy) -> dict[str, PhaseNumbers]:
    return {phase.name: _numbers(phase, policy) for phase in verdict.phases}


def _numbers(phase: PhaseVerdict, policy: Policy) -> PhaseNumbers:
    hours = _wall(phase, phase.requested_width)
    paid = [rung for rung in phase.ladder if rung.lane.partition(".")[0] in policy.paid_lanes]
    return PhaseNumbers(
        verdict=phase.verdict,
        width=phase.requested_width,
        wall_hours=hours,
        gpu_hours=_held(phase.requested_width, hours),
        paid_gpu_hours=_most([_held(rung.width, _wall(phase, rung.width)) for rung in paid]),
        rungs=tuple(_words(rung) for rung in phase.ladder),
    )


def _wall(phase: PhaseVerdict, width: int) -> float | None:
    """Wall clock at a width; one between two rows counts as the narrower one."""
    return next((row.wall_hours for row in reversed(phase.widths) if row.width <= width), None)


def _held(width: int, hours: float | None) -> float | None:
    # Without a GPU nothing is held, however long it takes.
    return 0.0 if not width else None if hours is None else round(width * hours, 4)


def _most(held: Iterable[float | None]) -> float | None:
    """The largest; None when one of them isn't known."""
    known: list[float] = []
    for one in held:
        if one is None:
            return None
        known.append(one)
    return max(known, default=0.0)


def _total(held: Iterable[float | None]) -> float | None:
    """The sum; None when one of them isn't known."""
    total = 0.0
    for one in held:
        if one is None:
            return None
        total += one
    return round(total, 4)


def _words(rung: Rung) -> str:
    return f"{rung.lane} {rung.provisioning_model.value} {rung.machine_type} {rung.width}"


def _difference(name: str, before: PhaseNumbers | None, after: PhaseNumbers | None) -> PhaseDifference:
    fields = PhaseNumbers.model_fields if before is not None and after is not None else ()
    changed = tuple(field for field in fields if getattr(before, field) != getattr(after, field))
    return PhaseDifference(name=name, before=before, after=after, changed=changed)


def _whole(plan: Plan, verdict: PlanVerdict, phases: dict[str, PhaseNumbers]) -> PlanNumbers:
    return PlanNumbers(
        verdict=verdict.verdict,
        wall_hours=_longest_path(plan.phases, phases),
        gpu_hours=_total(one.gpu_hours for one in phases.values()),
        paid_gpu_hours=_total(one.paid_gpu_hours for one in phases.values()),
    )


def _longest_path(phases: tuple[Phase, ...], numbers: dict[str, PhaseNumbers]) -> float | None:
    """Hours until the last phase ends when each starts after those it waits for; None when one isn't known."""
    waiting = {phase.name: set(phase.after) & set(numbers) for phase in phases}
    ends: dict[str, float] = {}
    ready = [name for name, before in waiting.items() if not before]
    followers: dict[str, list[str]] = {}
    for name, before in waiting.items():
        for one in before:
            followers.setdefault(one, []).append(name)
    starts: dict[str, float] = {}
    while ready:
        name = ready.pop()
        hours = numbers[name].wall_hours
        if hours is None:
            return None
        ends[name] = starts.get(name, 0.0) + hours
        for follower in followers.get(name, ()):
            starts[follower] = max(starts.get(follower, 0.0), ends[name])
            waiting[follower].discard(name)
            if not waiting[follower]:
                ready.append(follower)
    return round(max(ends.values(), default=0.0), 4)
