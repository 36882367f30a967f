"""release: let go of a run's machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from widelane.models.dispatch import RunStatus
from widelane.tools.given import RunGiven

if TYPE_CHECKING:
    from widelane.tools.desk import Desk


class ReleaseInput(RunGiven):
    """The run to let go of."""


def release(given: ReleaseInput, desk: Desk) -> RunStatus:
    """Ask for every machine of the run to be deleted, and return at once. Repeating it changes nothing.

    Raises:
        NotFoundError: no such run, or more than one with that prefix.
    """
    return desk.runs.release(given.run_id)
