"""Compares two plans by their verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from widelane.models.difference import PlanDifference
from widelane.tools.given import PlanGiven

if TYPE_CHECKING:
    from widelane.tools.desk import Desk


def compare_plans(before: Mapping[str, str], after: Mapping[str, str], desk: Desk) -> PlanDifference:
    """What changes from one plan to the other, under the same policy, lanes and quotas.

    Raises:
        PlanError: every problem of the first that can't be read.
    """
    from widelane import router  # noqa: PLC0415 - as in `Desk`, loaded at the first call

    (old, first), (new, second) = (desk.judged(PlanGiven(**one)) for one in (before, after))
    return router.compare((old.plan, first), (new.plan, second), desk.policy)
