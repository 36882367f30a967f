"""What a change of a plan changes in its verdict."""

from __future__ import annotations

from widelane.models.base import Frozen
from widelane.models.verdict import Verdict


class PhaseNumbers(Frozen):
    """A phase as it would run at the requested width. None: not known, as there is no estimate."""

    verdict: Verdict
    width: int
    wall_hours: float | None
    gpu_hours: float | None
    """Held: width times wall clock."""
    paid_gpu_hours: float | None
    """The most GPU-hours that a paid lane may be held for; 0 when its ladder has none."""
    rungs: tuple[str, ...]
    """ "LANE MODEL MACHINE WIDTH", in order."""


class PhaseDifference(Frozen):
    """One phase in both plans; None where it isn't there."""

    name: str
    before: PhaseNumbers | None
    after: PhaseNumbers | None
    changed: tuple[str, ...]
    """Fields of `PhaseNumbers` that differ; empty for a phase that is in one plan only."""


class PlanNumbers(Frozen):
    """A plan as it would run: phases that don't wait for each other count side by side."""

    verdict: Verdict
    wall_hours: float | None
    gpu_hours: float | None
    paid_gpu_hours: float | None


class PlanDifference(Frozen):
    """The answer of `diff`."""

    before: PlanNumbers
    after: PlanNumbers
    phases: tuple[PhaseDifference, ...]
    """In the order of the new plan; phases that are gone come last."""
