"""quota_check: which rungs the project's quotas admit, and which metric binds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from widelane.errors import InputError
from widelane.models.quota import QuotaReport
from widelane.tools.given import Count, Flag, PlanGiven, Text

if TYPE_CHECKING:
    from widelane.models.plan import ParsedPlan
    from widelane.models.quota import QuotaSnapshot
    from widelane.tools.desk import Desk


class QuotaCheckInput(PlanGiven):
    """A plan, or a width and an intent."""

    width: Count = Field(default=0, description="Instead of a plan: GPUs on one machine")
    intent: Text = Field(default="", description="With width: the kind of work, as in a plan")
    from_files: tuple[str, ...] = Field(
        default=(), description="Answers saved as JSON (gcloud regions/project-info describe), instead of asking"
    )
    fresh: Flag = Field(default=False, description="Ask again, even if quotas were read lately")


def quota_check(given: QuotaCheckInput, desk: Desk) -> QuotaReport:
    """Read the project's quotas, unless that was done lately, and say what each rung needs of them.

    Raises:
        InputError: neither a plan nor an intent, or both; a saved answer that can't be used.
        ConfigError: no project is configured.
        LaneAuthError: no credentials.
    """
    parsed = _plan(given, desk)
    # What can't be answered is refused before the network is asked.
    _report(parsed, given, desk, desk.known_quotas())
    if given.from_files:
        snapshot = desk.saved_quotas(given.from_files)
    else:
        known = None if given.fresh else desk.known_quotas()
        snapshot = known or desk.read_quotas()
    report = _report(parsed, given, desk, snapshot)
    return report.model_copy(update={"age_seconds": desk.age_of(snapshot)})


def _report(
    parsed: ParsedPlan | None, given: QuotaCheckInput, desk: Desk, snapshot: QuotaSnapshot | None
) -> QuotaReport:
    return desk.judge.quota_report(snapshot, parsed=parsed, intent=given.intent, width=given.width)


def _plan(given: QuotaCheckInput, desk: Desk) -> ParsedPlan | None:
    """The plan; None for a width and an intent."""
    planned = bool(given.plan or given.plan_path)
    if planned and (given.width or given.intent):
        raise InputError("a plan was given together with width or intent", hint="give one or the other")
    if planned:
        return desk.judged(given)[0]
    if not given.intent:
        raise InputError(
            "neither a plan nor an intent was given",
            hint=f"give `plan`, `plan_path`, or `width` and `intent`; intents: {', '.join(desk.catalog.intents)}",
        )
    return None
