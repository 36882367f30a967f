"""The prompts, and the same pages as resources: agents without a user at hand can't call prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver.prompts import Prompt
from pydantic import Field

from widelane.errors import InputError, WidelaneError
from widelane.prompts import purposes
from widelane.server.failures import prompt_error, resource_error
from widelane.tools.given import PlanGiven

if TYPE_CHECKING:
    from widelane.models.verdict import PlanVerdict
    from widelane.tools.desk import Desk

PlanArgument = Annotated[str, Field(description="A plan file's path, or a plan's text")]
PhaseArgument = Annotated[str, Field(description="Only this phase of the plan")]
LensArgument = Annotated[str, Field(description=f"What to look at: {', '.join(purposes.LENSES)}; all without it")]
_MARKDOWN = "text/markdown"


def add_prompts(server: MCPServer, desk: Desk) -> dict[str, Prompt]:
    """Register both prompts and their resources; answers what was registered, by name."""

    def planner_prompt(plan: PlanArgument = "", phase: PhaseArgument = "") -> str:
        try:
            return _planner(desk, plan, phase)
        except WidelaneError as failure:
            raise prompt_error(failure) from failure

    def critic_prompt(plan: PlanArgument = "", phase: PhaseArgument = "", lens: LensArgument = "") -> str:
        try:
            return _critic(desk, plan, phase, lens)
        except WidelaneError as failure:
            raise prompt_error(failure) from failure

    prompts = (
        Prompt.from_function(planner_prompt, name="planner", description=purposes.PLANNER),
        Prompt.from_function(critic_prompt, name="efficiency_critic", description=purposes.CRITIC),
    )
    for prompt in prompts:
        server.add_prompt(prompt)
    _add_pages(server, desk)
    return {prompt.name: prompt for prompt in prompts}


def _add_pages(server: MCPServer, desk: Desk) -> None:
    @server.resource("widelane://prompts/planner", name="planner", description=purposes.PLANNER, mime_type=_MARKDOWN)
    def planner_page() -> str:
        try:
            return _planner(desk, "", "")
        except WidelaneError as failure:
            raise resource_error(failure) from failure

    @server.resource(
        "widelane://prompts/efficiency_critic",
        name="efficiency_critic",
        description=purposes.CRITIC,
        mime_type=_MARKDOWN,
    )
    def critic_page() -> str:
        try:
            return _critic(desk, "", "", "")
        except WidelaneError as failure:
            raise resource_error(failure) from failure


def _planner(desk: Desk, plan: str, phase: str) -> str:
    from widelane.prompts import planner  # noqa: PLC0415 - loads the tables, so not at start-up

    return planner.page(desk.catalog, desk.policy, verdict=_verdict(desk, plan, phase), phase=phase)


def _critic(desk: Desk, plan: str, phase: str, lens: str) -> str:
    from widelane.prompts import critic  # noqa: PLC0415 - as above

    return critic.page(desk.catalog, desk.policy, verdict=_verdict(desk, plan, phase), phase=phase, lens=lens)


def _verdict(desk: Desk, plan: str, phase: str) -> PlanVerdict | None:
    """The verdict on the plan given, cut to the phase given."""
    if not plan:
        if phase:
            raise InputError("a phase was given without a plan", hint="give the plan's path or text as `plan`")
        return None
    given = PlanGiven(plan=plan) if "\n" in plan else PlanGiven(plan_path=plan)
    verdict = desk.judged(given)[1]
    if not phase:
        return verdict
    phases = tuple(row for row in verdict.phases if row.name == phase)
    if not phases:
        names = ", ".join(row.name for row in verdict.phases)
        raise InputError(f"phase {phase!r} isn't in the plan", hint=f"its phases are {names}")
    return verdict.model_copy(update={"phases": phases})
