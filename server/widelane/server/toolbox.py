"""The tools as the SDK sees them: schema, annotations, and calls that run off the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
import anyio.to_thread
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict, ValidationError

from widelane.errors import WidelaneError
from widelane.models.dispatch import DispatchAnswer, RunStatus
from widelane.models.quota import QuotaReport
from widelane.models.verdict import PlanVerdict
from widelane.server.failures import argument_error, tool_error
from widelane.server.schema import input_schema, output_schema
from widelane.server.waiting import await_status
from widelane.tools.dispatch import DispatchInput, dispatch
from widelane.tools.dispatch_status import DispatchStatusInput
from widelane.tools.plan_width import PlanWidthInput, plan_width
from widelane.tools.quota_check import QuotaCheckInput, quota_check
from widelane.tools.release import ReleaseInput, release

if TYPE_CHECKING:
    from widelane.tools.desk import Desk

Run = Callable[[Any, "Desk", Context], Awaitable[BaseModel]]
_CALLS = anyio.CapacityLimiter(16)
"""More calls than this at once wait their turn."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool. `depth` is how far down its answer's schema is published."""

    name: str
    title: str
    description: str
    given: type[BaseModel]
    answer: type[BaseModel]
    depth: int
    hints: ToolAnnotations
    run: Run


class Arguments(ArgModelBase):
    """Whatever was sent; the tool's own input model judges it, so that the text of a refusal is ours."""

    model_config = ConfigDict(extra="allow")

    def model_dump_one_level(self) -> dict[str, Any]:
        """The arguments as one mapping."""
        return {"arguments": dict(self.__pydantic_extra__ or {})}


def _threaded(function: Callable[[Any, Desk], BaseModel]) -> Run:
    async def run(given: Any, desk: Desk, ctx: Context) -> BaseModel:
        return await anyio.to_thread.run_sync(partial(function, given, desk), limiter=_CALLS)

    return run


async def _dispatch(given: Any, desk: Desk, ctx: Context) -> BaseModel:
    def report(progress: float, total: float, message: str) -> None:
        anyio.from_thread.run(ctx.report_progress, progress, total, message)

    return await anyio.to_thread.run_sync(partial(dispatch, given, desk, report), limiter=_CALLS)


_READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_READS_CLOUD = _READS.model_copy(update={"open_world_hint": True})
_STARTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True)

ENTRIES = (
    Entry(
        name="plan_width",
        title="Judge a plan's GPU width",
        description=(
            "Use it whenever a plan holds GPU work, before any machine is asked for. Answers PASS, or REVISE with "
            "coded findings and their fixes, and for each phase the width that pays, wall clock and efficiency at "
            "every width, and the ladder of machines that would be tried. Offline, milliseconds, creates nothing. "
            "Apply the fixes and call again until PASS; keep plan_digest for dispatch."
        ),
        given=PlanWidthInput,
        answer=PlanVerdict,
        depth=3,
        hints=_READS,
        run=_threaded(plan_width),
    ),
    Entry(
        name="quota_check",
        title="Check quotas for a width",
        description=(
            "Use it when a wide phase passed plan_width, to learn which rungs the cloud project's quotas admit "
            "now and which metric binds (limit, usage, needed). Give the plan, or width and intent. What it read "
            "counts in plan_width and dispatch for a few minutes. Reads only."
        ),
        given=QuotaCheckInput,
        answer=QuotaReport,
        depth=3,
        hints=_READS_CLOUD,
        run=_threaded(quota_check),
    ),
    Entry(
        name="dispatch",
        title="Run a judged plan",
        description=(
            "Use it to run a plan that passed plan_width. Without plan_digest it is a dry run. With it, the run "
            "starts and the call returns at once with run_id: the ladder is walked, units are spread over the "
            "realized width, machines are let go at the end, whether or not this session lives. On REVISE, or for "
            "a digest of another plan, nothing is created. The same work again adopts the live run or says "
            "already_done. Follow with dispatch_status; end early with release."
        ),
        given=DispatchInput,
        answer=DispatchAnswer,
        depth=1,
        hints=_STARTS,
        run=_dispatch,
    ),
    Entry(
        name="dispatch_status",
        title="Follow a run",
        description=(
            "Use it to follow a run: state, rungs tried and why each missed, requested and realized width, units "
            "done. wait_s makes the call return when the state changes or the run ends; call again while the "
            "state is live. Reads only; a run lives on without being watched."
        ),
        given=DispatchStatusInput,
        answer=RunStatus,
        depth=3,
        hints=_READS_CLOUD,
        run=await_status,
    ),
    Entry(
        name="release",
        title="Let go of a run's machines",
        description=(
            "Use it to end a run early or to make sure that nothing of it bills on. Its machines are deleted and "
            "queued requests withdrawn; units that are done keep their results. Runs let go by themselves at "
            "their end, so this is not needed then. Repeating it is harmless."
        ),
        given=ReleaseInput,
        answer=RunStatus,
        depth=1,
        hints=_ENDS,
        run=_threaded(release),
    ),
)


def tools(desk: Desk) -> list[Tool]:
    """Every tool, bound to `desk`."""
    return [_tool(entry, desk) for entry in ENTRIES]


def _tool(entry: Entry, desk: Desk) -> Tool:
    async def call(arguments: dict[str, Any], ctx: Context) -> CallToolResult:
        try:
            given = entry.given.model_validate(arguments)
        except ValidationError as failure:
            raise argument_error(failure, entry.given) from None
        try:
            answer = await entry.run(given, desk, ctx)
        except WidelaneError as failure:
            raise tool_error(failure) from failure
        text = TextContent(type="text", text=answer.model_dump_json())
        return CallToolResult(content=[text], structured_content=answer.model_dump(mode="json"))

    return Tool(
        fn=call,
        name=entry.name,
        title=entry.title,
        description=entry.description,
        parameters=input_schema(entry.given),
        fn_metadata=FuncMetadata(arg_model=Arguments, output_schema=output_schema(entry.answer, entry.depth)),
        is_async=True,
        context_kwarg="ctx",
        annotations=entry.hints,
    )
