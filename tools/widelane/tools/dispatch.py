"""dispatch: walk the ladder for a judged plan, or say what that would do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import Field

from widelane.errors import InputError, StalePlanError
from widelane.models.dispatch import DispatchAnswer
from widelane.models.verdict import PlanVerdict, Verdict
from widelane.tools.given import Flag, PlanGiven, Text

if TYPE_CHECKING:
    from widelane.models.plan import Plan
    from widelane.tools.desk import Desk

Report = Callable[[float, float, str], None]
"""Told how far a call is: (progress, total, what happened)."""


class DispatchInput(PlanGiven):
    """The plan, and the digest that starts it."""

    phase: Text = Field(default="", description="Only this phase; its earlier ones must be done")
    plan_digest: Text = Field(
        default="", description="From plan_width, for this very plan: starts it. Without: dry run"
    )
    fresh: Flag = Field(default=False, description="Run units again that have a result already")


def dispatch(given: DispatchInput, desk: Desk, report: Report | None = None) -> DispatchAnswer:
    """Start a run and return at once. Without a digest, or on REVISE, nothing is created.

    Raises:
        InputError: no plan, one that can't be read, or a phase that isn't in it.
        StalePlanError: the digest is of another plan or another policy.
        LaneAuthError: no credentials for a lane that is needed.
    """
    parsed, verdict = desk.judged(given)
    _require_phase(given.phase, parsed.plan)
    if report:
        report(1, 2, f"verdict {verdict.verdict.value}")
    if given.plan_digest and given.plan_digest != verdict.plan_digest:
        raise StalePlanError(
            "plan_digest isn't that of this plan under the policy in force; nothing was created",
            hint="call plan_width with this plan, read its verdict, and give the plan_digest that it returns",
        )
    if verdict.verdict is Verdict.REVISE:
        return _unstarted(verdict, "plan_revise", "apply each finding's fix, then call plan_width again")
    if not given.plan_digest:
        step = f"nothing was created; call dispatch again with plan_digest {verdict.plan_digest} to start"
        return _unstarted(verdict, "dry_run", step)
    answer = desk.submit(parsed, verdict, phase=given.phase, fresh=given.fresh)
    if report:
        report(2, 2, f"run {answer.run_id}: {answer.reason}")
    return answer


def _unstarted(verdict: PlanVerdict, reason: str, step: str) -> DispatchAnswer:
    return DispatchAnswer(started=False, reason=reason, plan_digest=verdict.plan_digest, plan=verdict, next_step=step)


def _require_phase(name: str, plan: Plan) -> None:
    names = [phase.name for phase in plan.phases]
    if name and name not in names:
        raise InputError(f"phase {name!r} isn't in the plan", hint=f"its phases are {', '.join(names)}")
