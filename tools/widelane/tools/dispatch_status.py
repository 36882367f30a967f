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
    """A run as it stands, at the latest `wait_s` seconds from now. Blocks for that long.

    Raises:
        NotFoundError: no such run, or more than one with that prefix.
    """
    if given.wait_s:
        return desk.runs.wait(given.run_id, given.wait_s)
    return desk.runs.status(given.run_id)
