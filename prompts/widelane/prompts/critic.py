"""The efficiency critic's page: two findings to revise on, what to look at, and what the engine found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widelane.errors import InputError
from widelane.prompts.purposes import LENSES
from widelane.prompts.source import Rendered, join, pick, render, source
from widelane.prompts.values import values
from widelane.prompts.verdict import plain, section

if TYPE_CHECKING:
    from widelane.facts import Catalog, Policy
    from widelane.models.verdict import PlanVerdict


def rendered(
    catalog: Catalog, policy: Policy, *, verdict: PlanVerdict | None = None, phase: str = "", lens: str = ""
) -> Rendered:
    """The page and the values in it.

    Raises:
        InputError: no such lens.
    """
    if lens and lens not in LENSES:
        raise InputError(f"there is no lens {lens[:40]!r}", hint=f"lenses are {', '.join(LENSES)}")
    known = values(catalog, policy)
    chosen = [source(f"lens-{name}") for name in ((lens,) if lens else LENSES)]
    lenses = [render(part, pick(part, known)) for part in chosen]
    page = source("efficiency-critic")
    return render(page, {**pick(page, known), "lenses": join(lenses, "\n\n")}, {"engine": _engine(verdict, phase)})


def page(
    catalog: Catalog, policy: Policy, *, verdict: PlanVerdict | None = None, phase: str = "", lens: str = ""
) -> str:
    """The page as text."""
    return rendered(catalog, policy, verdict=verdict, phase=phase, lens=lens).text


def _engine(verdict: PlanVerdict | None, phase: str) -> str:
    if verdict is None:
        return "## The plan\n\nNone was given with this page: call `plan_width` with the plan before you judge it."
    task = f"Review phase `{plain(phase)}` only." if phase else "Review every phase."
    return f"## What the engine says of the plan at hand\n\n{task}\n\n{section(verdict)}"
