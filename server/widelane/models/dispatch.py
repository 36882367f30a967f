"""What a run and its dispatches look like from outside."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from widelane.models.attempt import AttemptRow
from widelane.models.base import Frozen
from widelane.models.plan import Accept
from widelane.models.verdict import PlanVerdict


class DispatchState(StrEnum):
    """A dispatch is one phase of a run. The first five are live; the others are ends."""

    QUEUED = "queued"
    WALKING = "walking"
    WAITING = "waiting"
    RUNNING = "running"
    RELEASING = "releasing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    EXHAUSTED = "exhausted"
    STOPPED = "stopped"
    ATTEMPT_CAP = "attempt_cap"
    CANCELLED = "cancelled"

    @property
    def live(self) -> bool:
        """Whether it can still change."""
        return self in _LIVE


_LIVE = frozenset(
    {
        DispatchState.QUEUED,
        DispatchState.WALKING,
        DispatchState.WAITING,
        DispatchState.RUNNING,
        DispatchState.RELEASING,
    }
)


class UnitCounts(Frozen):
    """Units of one dispatch. `succeeded` counts the ones that had a record already."""

    total: int = 0
    succeeded: int = 0
    failed: int = 0
    running: int = 0


class GpuProgress(Frozen):
    """What one GPU did so far."""

    gpu: str
    done: int
    running: str = ""


class PhaseStatus(Frozen):
    """One dispatch. `realized_width` is counted on the host; None until a machine reported it."""

    name: str
    dispatch_id: str
    state: DispatchState
    reason: str = ""
    hint: str = ""
    requested_width: int
    realized_width: int | None = None
    lane: str | None = None
    machine_type: str | None = None
    provisioning_model: str | None = None
    zone: str | None = None
    machine: str | None = None
    """Name of the machine held, None when none is."""
    attempts: tuple[AttemptRow, ...] = ()
    units: UnitCounts = UnitCounts()
    gpus: tuple[GpuProgress, ...] = ()
    alarms: tuple[str, ...] = ()
    """What the watch says of the machine held: idle GPUs, work that seems to hang. Nothing is done about it."""


class RunStatus(Frozen):
    """A run: a plan's phases in `after` order. `state` sums up those of its phases."""

    run_id: str
    state: DispatchState
    task: str | None = None
    plan_digest: str
    started_at: str
    ended_at: str | None = None
    note: str = ""
    accepted: tuple[Accept, ...] = ()
    phases: tuple[PhaseStatus, ...]
    last_seq: int = 0
    """Sequence number of the newest event; wait for a larger one."""


class UnitLog(Frozen):
    """The last part of one log. `part` is `setup`, `merge-N` or `UNIT-N`, N counting the tries on that machine."""

    phase: str
    part: str
    attempt_id: str
    text: str


class RunEvent(Frozen):
    """One line of a run's journal, as shown to people and agents."""

    seq: int
    at: str
    kind: str
    dispatch_id: str | None
    body: dict[str, Any]


class DispatchAnswer(Frozen):
    """The answer of `dispatch`: a dry run (no run_id), a refusal, or a started run."""

    started: bool
    reason: str
    """dry_run, plan_revise, started, adopted, already_done."""
    run_id: str | None = None
    state: DispatchState | None = None
    plan_digest: str
    plan: PlanVerdict | None = None
    next_step: str = ""
    phases: tuple[PhaseStatus, ...] = ()
