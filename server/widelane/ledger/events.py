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
    failover_of: str = ""
    """The attempt whose work failed, in the one walk that a failed workload may have; it has last-resort rungs only."""


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
    secrets: tuple[str, ...] = ()
    """Names; values are never written down."""
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
    lane: str = ""
    machine_type: str = ""
    provisioning_model: str = ""
    zone: str = ""
    requested_width: int = 0
    """GPUs that the phase asked for; `width` is what this create asked for, and nothing was realized."""
    width: int = 0
    realized_width: int = 0


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
    machine_id: str = ""
    """The service's own id: a name may be given again, an id isn't. "" where the machine was gone before that."""


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
    requested_width: int = 0
    realized_width: int = 0


class LeaseLost(Frozen):
    """The machine is gone, or will be, without a last word."""

    kind: Literal["lease_lost"] = "lease_lost"
    attempt_id: str
    outcome: Outcome
    code: str
    message: str
    worked: bool
    """Whether the host had counted its devices before."""
    requested_width: int = 0
    realized_width: int = 0


class GpusIdle(Frozen):
    """Several GPUs of a machine have had nothing to run since a moment of the lane's clock.

    `noted` only remembers when it began, `advisory` and `loud` are said after the times of the policy, `over` ends it.
    Nothing is done about it.
    """

    kind: Literal["gpus_idle"] = "gpus_idle"
    attempt_id: str
    level: Literal["noted", "advisory", "loud", "over"]
    since: str
    minutes: float = 0.0
    requested_width: int = 0
    realized_width: int = 0
    """GPUs held."""
    idle: int = 0
    running: int = 0
    over: int = 0
    """Units that had ended by then, well or not."""
    stage: str = ""
    """What the host was at: setup, running, merging, or held between phases."""

    @property
    def words(self) -> str:
        """For people."""
        at = f" ({self.stage})" if self.stage else ""
        return f"{self.idle} of {self.realized_width} GPUs have had nothing to run for {self.minutes:.0f} min{at}"


class WorkQuiet(Frozen):
    """A host has reported no unit begun or ended since a moment of the lane's clock, though units are left.

    `noted` is the first sign, `suspected` the second one after another while: only then it counts as a hang. `over`
    ends it. Nothing is done about it.
    """

    kind: Literal["work_quiet"] = "work_quiet"
    attempt_id: str
    level: Literal["noted", "suspected", "over"]
    since: str
    minutes: float = 0.0
    requested_width: int = 0
    realized_width: int = 0
    running: int = 0
    over: int = 0
    """Units that had ended by then, well or not."""

    @property
    def words(self) -> str:
        """For people."""
        return f"no unit has begun or ended for {self.minutes:.0f} min, {self.running} running: it may hang"


class Released(Frozen):
    """The service says that there is no such machine any more."""

    kind: Literal["released"] = "released"
    attempt_id: str


class MachineReaped(Frozen):
    """`reap` is about to delete a machine that outlived its work. Changes no state."""

    kind: Literal["machine_reaped"] = "machine_reaped"
    attempt_id: str
    name: str
    zone: str
    reason: str


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


class Notified(Frozen):
    """The configured command was told of something, or could not be."""

    kind: Literal["notified"] = "notified"
    about: str
    """Kind of the event that it was told of."""
    about_seq: int
    ok: bool
    detail: str = ""


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
    | MachineReaped
    | GpusIdle
    | WorkQuiet
    | Trouble
    | PhaseEnded
    | RunEnded
    | Notified,
    Field(discriminator="kind"),
]

_adapter: TypeAdapter[Event] = TypeAdapter(Event)


def parse_event(text: str) -> Event:
    """The event a journal row holds."""
    return _adapter.validate_json(text)
