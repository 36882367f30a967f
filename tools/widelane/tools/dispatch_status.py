"""dispatch_status: where a run stands; may wait for it to move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from widelane.models.dispatch import RunStatus
from widelane.tools.given import RunGiven, Seconds

if TYPE_CHECKING:
    from widelane.tools.desk import Desk


class DispatchStatusInput(RunGiven):
    """The run, and how long the answer may wait for it to move."""

    wait_s: Seconds = Field(default=0, description="Seconds to wait for a change of state; 50 at most")


def dispatch_status(given: DispatchStatusInput, desk: Desk) -> RunStatus:
    """A run as it stands, or as it stands once it has moved, at the latest `wait_s` seconds from now. Blocks so long.

    Raises:
        NotFoundError: no such run.
        InputError: more than one run with that prefix.
    """
    status = desk.runs.status(given.run_id)
    if not given.wait_s or not status.state.live:
        return status
    return desk.runs.wait(status.run_id, given.wait_s, enough=lambda now: moved(status, now))


def moved(before: RunStatus, now: RunStatus) -> bool:
    """Whether a wait is over: a state changed, or a width was realized. Units that end are progress, not moves."""
    return _shape(before) != _shape(now)


def _shape(status: RunStatus) -> tuple[object, ...]:
    return status.state, *((phase.state, phase.realized_width) for phase in status.phases)
