"""Every failure that widelane raises on purpose.

A refusal (stock-out, quota, REVISE) is data and never appears here; these are failures.

    WidelaneError               code, hint: what to do next
    |- InputError               what the caller gave can't be used; exit 2
    |  |- PlanError             a plan that can't be read: every problem, with line and column
    |  |- TableError            a fact or policy table: file, row, column
    |  |- ConfigError           widelane.toml, environment, command line
    |  |- ScenarioError         a simcloud scenario
    |  `- StalePlanError        the digest given is not that of the plan as it reads now
    |- NotFoundError            no such run, dispatch, unit
    |- BusyError                someone else holds what is needed (the holder is named)
    |- LaneError                lane, failure: a lane's call failed and the walk can't go on
    |  |- LaneAuthError         credentials missing, expired or refused: `login_needed`
    |  `- LaneUnknownError      the state of a machine can't be told: neither create nor delete
    |- StoreError               archives, outputs or records can't be read or written
    |- LedgerError              the journal can't be read or written
    `- UnjudgedError            an answer could not be formed (exit 3)
"""

from __future__ import annotations

from dataclasses import dataclass


class WidelaneError(Exception):
    """Base of all of them.

    `code` is stable and snake_case; `hint` is the next thing to do, or empty.
    """

    code = "error"

    def __init__(self, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InputError(WidelaneError):
    """What the caller gave can't be used."""

    code = "bad_input"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a text: where (1-based line and column), what, and how to mend it."""

    origin: str
    line: int
    column: int
    code: str
    message: str
    fix: str = ""

    def __str__(self) -> str:
        place = f"{self.origin}:{self.line}:{self.column}"
        return f"{place}: {self.message}" + (f" Fix: {self.fix}" if self.fix else "")


class PlanError(InputError):
    """A plan that can't be read. Carries every problem, not the first."""

    code = "bad_plan"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class TableError(InputError):
    """A fact or policy table that can't be used: file, row and column are in the message."""

    code = "bad_table"

    def __init__(self, file: str, row: int, column: str, message: str) -> None:
        super().__init__(f"{file}: row {row}, column {column}: {message}")
        self.file = file
        self.row = row
        self.column = column


class ConfigError(InputError):
    """widelane.toml, the environment or the command line."""

    code = "bad_config"


class ScenarioError(InputError):
    """A simcloud scenario that can't be used."""

    code = "bad_scenario"


class StalePlanError(InputError):
    """The digest given is not that of the plan as it reads now."""

    code = "stale_plan"


class NotFoundError(WidelaneError):
    """No such run, dispatch or unit."""

    code = "not_found"


class BusyError(WidelaneError):
    """Someone else holds what is needed; the message names the holder."""

    code = "busy"


class LaneError(WidelaneError):
    """A lane's call failed and the walk can't go on."""

    code = "lane_failed"

    def __init__(self, lane: str, message: str, *, hint: str = "", code: str | None = None) -> None:
        super().__init__(f"{lane}: {message}", hint=hint, code=code)
        self.lane = lane


class LaneAuthError(LaneError):
    """Credentials are missing, expired or refused."""

    code = "login_needed"


class LaneUnknownError(LaneError):
    """The state of a machine can't be told, so it is neither created nor deleted."""

    code = "state_unknown"


class StoreError(WidelaneError):
    """Archives, outputs or records can't be read or written."""

    code = "store_failed"


class LedgerError(WidelaneError):
    """The journal can't be read or written."""

    code = "ledger_failed"


class UnjudgedError(WidelaneError):
    """An answer could not be formed."""

    code = "unjudged"
