"""What judging a pasted answer gives."""

from __future__ import annotations

from dataclasses import dataclass

from widelane.models.attempt import Failure, Outcome, Scope


@dataclass(frozen=True, slots=True)
class Judged:
    """A classified answer. `waits`: the request stays queued; `ran`: it is the end of a machine that worked."""

    failure: Failure
    waits: bool = False
    ran: bool = False
    fine: bool = False
    """It tells of no failure; `failure.message` says of what."""


def fine(what: str, body: str = "") -> Judged:
    """An answer that is no failure."""
    told = Failure(
        outcome=Outcome.UNKNOWN, scope=Scope.INSTANCE, code="NO_FAILURE", message=f"no failure: {what}", body=body
    )
    return Judged(told, fine=True)
