"""What `reap` found on the lanes, and what became of it."""

from __future__ import annotations

from enum import StrEnum

from widelane.models.base import Frozen


class Standing(StrEnum):
    """What a machine with our label is to this home."""

    LIVE = "live"
    """A run here is at it."""
    FINISHED = "finished"
    """Ours, and its work here is over."""
    PAST_FENCE = "past_fence"
    """Ours, and still there after its run limit."""
    FOREIGN = "foreign"
    """Has our label and isn't in this home's journal: another home's, or another user's."""


class Fate(StrEnum):
    """What was done with it."""

    KEPT = "kept"
    DUE = "due"
    """Would be deleted."""
    DELETED = "deleted"
    """The service says that it is gone."""
    DELETING = "deleting"
    """The service took the request, and still shows it."""


class ReapRow(Frozen):
    """One machine."""

    lane: str
    name: str
    zone: str
    machine_type: str
    state: str
    """queued, starting, running, stopping or stopped."""
    created_at: str
    attempt_id: str
    run_id: str
    """Of the label; "" without one."""
    standing: Standing
    detail: str
    fate: Fate


class UnaskedLane(Frozen):
    """A lane that didn't answer, so nothing is known of its machines."""

    lane: str
    message: str
    hint: str = ""


class ReapReport(Frozen):
    """Every machine with our label. `deleting` tells whether anything was to be deleted, or only looked for."""

    deleting: bool
    rows: tuple[ReapRow, ...]
    unasked: tuple[UnaskedLane, ...] = ()

    @property
    def left(self) -> int:
        """Machines that should be gone and aren't."""
        return sum(row.fate in (Fate.DUE, Fate.DELETING) for row in self.rows)
