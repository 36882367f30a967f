"""What can happen to a run: one type an event, one sentence each.

The journal keeps them for good, so a field is never renamed or removed; new ones get a default.
`phase` events carry the dispatch they belong to in the journal's own column.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from widelane.models.attempt import Outcome, Scope
from widelane.models.base import Frozen
from widelane.models.plan import Accept
from widelane.models.verdict import PhaseVerdict, Rung


class RequestedPhase(Frozen):
    """A phase as it was asked for, with the verdict that let it pass."""

    dispatch_id: str
    dispatch_key: str
    """What the phase comes to, whatever run it is in: at most one live dispatch has it."""
    verdict: PhaseVerdict

    @property
    def name(self) -> str:
        """The phase's name."""
        return self.verdict.name

    @property
    def requested_width(self) -> int:
        """GPUs asked for; 0 for a phase without."""
        return self.verdict.requested_width

    @property
    def min_width(self) -> int:
        """The narrowest width that may start."""
        return self.verdict.min_width


class RunRequested(Frozen):
    """A client asked for a run; everything a supervisor needs is in here or in the store."""

    kind: Literal["run_requested"] = "run_requested"
    run_key: str
    task: str | None
    plan: dict[str, Any]
    plan_digest: str
    origin: str
    phases: tuple[RequestedPhase, ...]
    store_url: str
    runner_sha256: str
    sources: dict[str, str] = Field(default_factory=dict)
    """Digest of the source archive by phase name."""
    generation: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The caller's lanes and policy overrides; no secrets are in there."""
    sim_url: str | None = None
    accepted: tuple[Accept, ...] = ()


class CancelRequested(Frozen):
    """Somebody wants the run to stop and its machines to go."""

    kind: Literal["cancel_requested"] = "cancel_requested"
    by: str = ""


class ReleaseRequested(Frozen):
    """Somebody wants whatever the run still holds to go; like a cancel for a live run."""

    kind: Literal["release_requested"] = "release_requested"
    by: str = ""


class PhaseStarted(Frozen):
    """The phase's turn came; its units are known unless their number waits for the first lease."""

    kind: Literal["phase_started"] = "phase_started"
    units: int | None = None
    already_done: int = 0


class WalkStarted(Frozen):
    """A walk begins, over this ladder."""

    kind: Literal["walk_started"] = "walk_started"
    number: int
    ladder: tuple[Rung, ...]
    quota_taken_at: str | None = None
    reason: str = "first"


class RungSkipped(Frozen):
    """A rung is left out without a create."""

    kind: Literal["rung_skipped"] = "rung_skipped"
    walk: int
    rung: int
    code: str
    message: str


class AttemptIntended(Frozen):
    """A create is about to be sent; it must be decided by `deadline`. Times are of the lane's clock."""

    kind: Literal["attempt_intended"] = "attempt_intended"
    attempt_id: str
    walk: int
    rung: int
    zone: str
    name: str
    request_id: str
    fence_seconds: int
    wait_seconds: int
    sent_at: str
    deadline: str
    spec_key: str
    image: str | None = None
    disk_gib: int | None = None
    least_seconds: int = 0


class AttemptAccepted(Frozen):
    """The service took the create and names its operation."""

    kind: Literal["attempt_accepted"] = "attempt_accepted"
    attempt_id: str
    operation: str
    queued: bool
    hint: str = ""


class AttemptFailed(Frozen):
    """The create came to nothing, and nothing of it is left."""

    kind: Literal["attempt_failed"] = "attempt_failed"
    attempt_id: str
    outcome: Outcome
    scope: Scope
    code: str
    message: str
    body: str = ""
    metric: str | None = None
    zones_hint: tuple[str, ...] = ()
    hint: str = ""


class BackendSelected(Frozen):
    """A machine runs. Type and model are as the service reads them back."""

    kind: Literal["backend_selected"] = "backend_selected"
    attempt_id: str
    requested_width: int
    realized_width: int
    degraded: bool
    lane: str
    machine_type: str
    provisioning_model: str
    zone: str
    reason: str
    evidence: tuple[str, ...] = ()
    """Attempts of this walk that ended before, oldest first."""
    report_by: str = ""
    """Lane clock's time by which the host must have counted its devices."""


class WidthRealized(Frozen):
    """The host counted its devices."""

    kind: Literal["width_realized"] = "width_realized"
    attempt_id: str
    realized_width: int
    expected_width: int
    devices: tuple[str, ...] = ()


class LeaseFinished(Frozen):
    """The host said its last word."""

    kind: Literal["lease_finished"] = "lease_finished"
    attempt_id: str
    state: str
    reason: str = ""
    total: int = 0
    succeeded: int = 0
    failed: int = 0
    gpu_seconds_busy: float = 0.0
    gpu_seconds_held: float = 0.0


class LeaseLost(Frozen):
    """The machine is gone, or will be, without a last word."""

    kind: Literal["lease_lost"] = "lease_lost"
    attempt_id: str
    outcome: Outcome
    code: str
    message: str
    worked: bool
    """Whether the host had counted its devices before."""


class Released(Frozen):
    """The service says that there is no such machine any more."""

    kind: Literal["released"] = "released"
    attempt_id: str


class Trouble(Frozen):
    """Something outside doesn't answer; it is asked again until it does."""

    kind: Literal["trouble"] = "trouble"
    code: str
    message: str
    hint: str = ""


class PhaseEnded(Frozen):
    """The phase came to an end."""

    kind: Literal["phase_ended"] = "phase_ended"
    state: str
    reason: str = ""
    hint: str = ""
    total: int = 0
    succeeded: int = 0
    failed: int = 0


class RunEnded(Frozen):
    """The run came to an end."""

    kind: Literal["run_ended"] = "run_ended"
    state: str
    note: str = ""


Event = Annotated[
    RunRequested
    | CancelRequested
    | ReleaseRequested
    | PhaseStarted
    | WalkStarted
    | RungSkipped
    | AttemptIntended
    | AttemptAccepted
    | AttemptFailed
    | BackendSelected
    | WidthRealized
    | LeaseFinished
    | LeaseLost
    | Released
    | Trouble
    | PhaseEnded
    | RunEnded,
    Field(discriminator="kind"),
]

_adapter: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(text: str) -> Event:
    """The event a journal row holds."""
    return _adapter.validate_json(text)
