"""Refuses prompt requests that can't be answered, with the names that can; the SDK says only "internal error"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver.prompts import Prompt
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS


class PromptGuard:
    """Middleware around `prompts/get`. `prompts` are those that are listed, by name."""

    def __init__(self, prompts: Mapping[str, Prompt]) -> None:
        self._prompts = prompts

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer -32602 for a name or an argument that isn't known, or one that is missing."""
        if ctx.method == "prompts/get" and ctx.request_id is not None:
            problem = self._problem(ctx.params or {})
            if problem:
                raise MCPError(code=INVALID_PARAMS, message=problem)
        return await call_next(ctx)

    def _problem(self, params: Mapping[str, Any]) -> str:
        prompt = self._prompts.get(str(params.get("name")))
        if prompt is None:
            return f"Unknown prompt: {str(params.get('name'))[:80]!r}. There are: {', '.join(self._prompts)}"
        known = {argument.name: bool(argument.required) for argument in prompt.arguments or ()}
        sent = params.get("arguments")
        given = {str(name) for name in cast("dict[object, object]", sent)} if isinstance(sent, dict) else set[str]()
        unknown = sorted(given - set(known))
        if unknown:
            return f"Prompt {prompt.name} has no argument {unknown[0][:80]!r}. It takes: {', '.join(known)}"
        missing = sorted(name for name, required in known.items() if required and name not in given)
        return f"Prompt {prompt.name} needs the argument {missing[0]!r}" if missing else ""
