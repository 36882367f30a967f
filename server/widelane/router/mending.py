"""Which findings can be mended without a choice: one value is right, and it replaces another or a key goes."""

from __future__ import annotations

from collections.abc import Iterator

from widelane.models.mend import Mend
from widelane.models.plan import ParsedPlan, Phase
from widelane.models.verdict import Finding, FindingCode, PhaseVerdict, PlanVerdict, Severity

_TO_RECOMMENDED = frozenset(
    {
        FindingCode.UNSHARDED_WIDE,
        FindingCode.NEEDLESSLY_NARROW,
        FindingCode.TOO_WIDE,
        FindingCode.BAD_GROUP,
        FindingCode.OFF_LADDER,
        FindingCode.DOES_NOT_FIT,
        FindingCode.EXCEEDS_RUN_LIMIT,
        FindingCode.QUOTA_DENIES,
    }
)
"""Findings that asking for the recommended width may end."""

_BEFORE_WIDTH = frozenset({FindingCode.COMMAND_AXES, FindingCode.COMMAND_SHELL, FindingCode.NO_ESTIMATE})
"""Findings without whose end nothing can be said about width."""


def mends(parsed: ParsedPlan, verdict: PlanVerdict) -> tuple[Mend, ...]:
    """Changes to a plan's text that its findings make plain. A finding that leaves a choice has none.

    What a width gives hangs on the rest of its phase, so the width of a phase is left until nothing else is to mend.
    """
    found: list[Mend] = []
    for index, (phase, judged) in enumerate(zip(parsed.plan.phases, verdict.phases, strict=True)):
        wrong = [one for one in judged.findings if one.severity is Severity.ERROR and one.accepted is None]
        own = [mend for finding in wrong for mend in _mends(index, phase, finding)]
        if not own and not any(finding.code in _BEFORE_WIDTH for finding in wrong):
            own = [mend for finding in wrong for mend in _recommended(index, phase, judged, finding)]
        found += own
    return tuple(dict.fromkeys(found))


def _recommended(index: int, phase: Phase, judged: PhaseVerdict, finding: Finding) -> Iterator[Mend]:
    recommended = judged.recommended_width
    # A least width that is in the way is the plan's own word: whether it may give way is a choice.
    in_the_way = (phase.min_width or 0) > recommended
    if finding.code in _TO_RECOMMENDED and phase.width not in (None, recommended) and not in_the_way:
        yield Mend(("phases", index, "width"), str(recommended))


def _mends(index: int, phase: Phase, finding: Finding) -> Iterator[Mend]:
    here, numbers = ("phases", index), finding.numbers
    if finding.code is FindingCode.IDLE_WIDTH:
        yield Mend((*here, "hold" if "held" in numbers else "width"), None)
    elif finding.code is FindingCode.INTENT_UNKNOWN and numbers.get("instead"):
        yield Mend((*here, "intent"), str(numbers["instead"]))
    elif finding.code is FindingCode.COMMAND_AXES and numbers.get("instead") and not phase.arms:
        for key in ("command", "outputs"):
            yield Mend((*here, key), f"{{{numbers['instead']}}}", f"{{{numbers['name']}}}")
