"""What the tools take: arguments that models fill in, so absent, null and empty mean the same."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from widelane.errors import InputError
from widelane.models.base import Frozen


def _text(value: Any) -> Any:
    return "" if value is None else value


def _plan_text(value: Any) -> Any:
    # Some hosts parse JSON inside arguments; JSON is YAML, so the text can be given back.
    return json.dumps(value, indent=1) if isinstance(value, dict) else _text(value)


def _number(value: Any) -> Any:
    return 0 if value is None else value


def _flag(value: Any) -> Any:
    return False if value is None else value


Text = Annotated[str, BeforeValidator(_text)]
Flag = Annotated[bool, BeforeValidator(_flag)]
# The bounds come first: behind a validator they would not reach the published schema as `minimum` and `maximum`.
Count = Annotated[int, Field(ge=0), BeforeValidator(_number)]
Seconds = Annotated[float, Field(ge=0, le=50), BeforeValidator(_number)]


class PlanGiven(Frozen):
    """A plan, as text or as the path of a file. Paths start from the working folder."""

    plan: Annotated[str, BeforeValidator(_plan_text)] = Field(
        default="", description="Plan text: YAML, or Markdown with one `yaml widelane` block"
    )
    plan_path: Text = Field(default="", description="Or the plan's file, from the server's working folder")

    def require_one(self) -> None:
        """Raise unless exactly one of the two is given.

        Raises:
            InputError: none or both.
        """
        if self.plan and self.plan_path:
            raise InputError(
                "plan and plan_path were both given",
                hint="give the plan's text as `plan`, or its file as `plan_path`, not both",
            )
        if not (self.plan or self.plan_path):
            raise InputError("no plan was given", hint="give the plan's text as `plan`, or its file as `plan_path`")


class RunGiven(Frozen):
    """A run, by its id, a unique prefix of it, or `last`."""

    run_id: str = Field(min_length=1, description="Run id, a unique prefix of it, or `last`")
