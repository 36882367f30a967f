"""The explanation of an answer as text."""

from __future__ import annotations

from widelane.models.attempt import Outcome
from widelane.models.error_explanation import ErrorExplanation
from widelane.reports.clean import clean_line
from widelane.reports.paper import Paper, Style

_STYLES: dict[Outcome, Style] = {Outcome.CAPACITY: "warn", Outcome.TRANSIENT: "warn", Outcome.UNKNOWN: "dim"}


def explanation_report(told: ErrorExplanation, paper: Paper) -> str:
    """Class and scope, the provider's words, what follows, and what to do."""
    head = paper.paint(told.outcome.value, _STYLES.get(told.outcome, "bad"))
    lines = [f"{head}  scope {told.scope.value}, {clean_line(told.lane)}, {clean_line(told.code)}"]
    if told.message and told.message not in told.reason:
        lines += paper.wrap(clean_line(told.message), "  ")
    lines += paper.wrap(f"{told.action.value}: {clean_line(told.reason)}", "  ", "    ")
    if told.zones:
        lines += paper.wrap(f"zones that it names: {clean_line(', '.join(told.zones))}", "  ")
    if told.may_have_happened:
        lines += paper.wrap("the call may have taken effect although it failed", "  ")
    if told.hint:
        lines += paper.wrap(f"fix: {clean_line(told.hint)}", "  ", "    ")
    return "\n".join(lines) + "\n"
