"""plan_width: what a plan's widths give, which width pays, and the ladder that would be walked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widelane.models.verdict import PlanVerdict
from widelane.tools.given import PlanGiven

if TYPE_CHECKING:
    from widelane.tools.desk import Desk


class PlanWidthInput(PlanGiven):
    """The plan to judge."""


def plan_width(given: PlanWidthInput, desk: Desk) -> PlanVerdict:
    """Judge a plan. Offline; creates and writes nothing.

    Raises:
        InputError: no plan, or one that can't be read.
    """
    return desk.judged(given)[1]
