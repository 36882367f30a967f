"""What SLURM said, brought to two forms before it is judged: a command that failed, and the state of a job.

Plain data: neither reading nor judging needs a cluster, so text that somebody pasted is judged alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from widelane.errors import InputError

BODY_LIMIT = 4000
_NOISE = re.compile(r"^(?:\w+: )*(?:error|fatal): |^\w+: ")
_FAILED = "Batch job submission failed: "


@dataclass(frozen=True, slots=True)
class Refusal:
    """A client command that failed: its exit code and everything that it said."""

    code: int
    text: str

    @property
    def words(self) -> str:
        """The line with the reason: the one before the general "submission failed", else that one's tail."""
        lines = [_NOISE.sub("", line.strip()) for line in self.text.splitlines() if line.strip()]
        tail = next((line.removeprefix(_FAILED) for line in lines if line.startswith(_FAILED)), "")
        before = [line for line in lines if not line.startswith(_FAILED)]
        return before[-1] if before else tail

    @property
    def body(self) -> str:
        """As it came, bounded."""
        return f"exit code {self.code}\n{self.text}"[:BODY_LIMIT]


@dataclass(frozen=True, slots=True)
class JobState:
    """A job as the controller or accounting describes it. Exit codes are SLURM's `CODE:SIGNAL`."""

    state: str
    reason: str = ""
    exit_code: str = ""
    derived_exit_code: str = ""
    restarts: int = 0
    log_tail: str = ""

    @property
    def word(self) -> str:
        """The first word of the reason, which names its kind."""
        return self.reason.strip("() ").partition(",")[0].strip()

    @property
    def body(self) -> str:
        """Everything that is known, bounded."""
        known = [
            f"{self.state} {self.reason}".strip(),
            f"exit code {self.exit_code}" if self.exit_code else "",
            f"derived exit code {self.derived_exit_code}" if self.derived_exit_code else "",
            self.log_tail.strip(),
        ]
        return "\n".join(line for line in known if line)[:BODY_LIMIT]


def read(document: Mapping[str, object]) -> Refusal | JobState:
    """An answer in the form of the table of errors: `rc` and `stderr`, or `state` with `reason` and codes.

    Raises:
        InputError: it is neither.
    """
    if isinstance(document.get("state"), str):
        restarts = document.get("restarts")
        return JobState(
            state=_text(document, "state"),
            reason=_text(document, "reason"),
            exit_code=_text(document, "exit_code"),
            derived_exit_code=_text(document, "derived_exit_code"),
            restarts=restarts if isinstance(restarts, int) else 0,
            log_tail=_text(document, "log_tail"),
        )
    code = document.get("rc")
    if isinstance(code, int):
        return Refusal(code, _text(document, "stderr"))
    raise InputError("neither `rc` with `stderr` nor `state`: not an answer of SLURM", code="not_an_answer")


def _text(document: Mapping[str, object], key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""
