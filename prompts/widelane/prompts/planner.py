"""The planner's page: what a plan has to say, and what the engine says of a draft."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widelane.prompts.source import Rendered, pick, render, source
from widelane.prompts.values import values
from widelane.prompts.verdict import plain, section

if TYPE_CHECKING:
    from widelane.facts import Catalog, Policy
    from widelane.models.verdict import PlanVerdict


def rendered(catalog: Catalog, policy: Policy, *, verdict: PlanVerdict | None = None, phase: str = "") -> Rendered:
    """The page and the values in it. `verdict` is the engine's on a draft; `phase` narrows the task to one phase."""
    page = source("planner")
    return render(page, pick(page, values(catalog, policy)), {"draft": _draft(verdict, phase)})


def page(catalog: Catalog, policy: Policy, *, verdict: PlanVerdict | None = None, phase: str = "") -> str:
    """The page as text."""
    return rendered(catalog, policy, verdict=verdict, phase=phase).text


def _draft(verdict: PlanVerdict | None, phase: str) -> str:
    if verdict is None:
        return "No draft was given: start from the task."
    task = f"Rework phase `{plain(phase)}` of it; leave the others as they are." if phase else "Rework it."
    return f"## The draft at hand\n\n{task}\n\n{section(verdict)}"
