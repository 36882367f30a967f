"""The one place where our errors become the SDK's. The SDK withholds the text of any other exception."""

from __future__ import annotations

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel, ValidationError

from widelane.errors import InputError, NotFoundError, PlanError, WidelaneError

_LONGEST = 4000


def told(failure: WidelaneError) -> str:
    """A failure as the model reads it: code, message, next step."""
    text = f"{failure.code}: {_cut(failure)}"
    step = failure.hint or ("mend what is named above and call again" if isinstance(failure, InputError) else "")
    return f"{text}\nNext: {step}" if step else text


def _cut(failure: WidelaneError) -> str:
    if len(failure.message) <= _LONGEST:
        return failure.message
    kept = failure.message[:_LONGEST].rpartition("\n")[0] or failure.message[:_LONGEST]
    more = len(failure.problems) - kept.count("\n") - 1 if isinstance(failure, PlanError) else 0
    return f"{kept}\n... and {more} more problems" if more > 0 else f"{kept} ... (cut)"


def tool_error(failure: WidelaneError) -> ToolError:
    """For a tool call: an error result that the model can act on."""
    return ToolError(told(failure))


def prompt_error(failure: WidelaneError) -> MCPError:
    """For a prompt: invalid params, with the text."""
    return MCPError(code=INVALID_PARAMS, message=told(failure))


def resource_error(failure: WidelaneError) -> ResourceError:
    """For a resource: not found, or the text."""
    return (ResourceNotFoundError if isinstance(failure, NotFoundError) else ResourceError)(told(failure))


def argument_error(failure: ValidationError, model: type[BaseModel]) -> ToolError:
    """For arguments that don't fit: what is wrong with each, and the names that are known."""
    lines = [_argument(error["loc"], error["type"], error["msg"]) for error in failure.errors(include_url=False)[:8]]
    return ToolError("bad_arguments: " + "; ".join(lines) + f"\nNext: arguments are {', '.join(model.model_fields)}")


def _argument(place: tuple[int | str, ...], kind: str, message: str) -> str:
    name = ".".join(str(part)[:60] for part in place)
    if kind == "extra_forbidden":
        return f"{name!r} is no argument of this tool"
    if kind == "missing":
        return f"{name} is missing"
    return f"{name}: {message[0].lower()}{message[1:]}"
