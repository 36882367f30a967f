"""What one create came to, and what the walk may conclude from it."""

from __future__ import annotations

from enum import StrEnum

from widelane.models.base import Frozen
from widelane.models.plan import ProvisioningModel


class Outcome(StrEnum):
    """How an attempt ended."""

    GRANTED = "granted"
    SKIPPED = "skipped"
    CAPACITY = "capacity"
    QUEUE_EXPIRED = "queue_expired"
    QUEUE_VANISHED = "queue_vanished"
    QUOTA = "quota"
    CONFLICT = "conflict"
    TRANSIENT = "transient"
    PREEMPTED = "preempted"
    PERMISSION = "permission"
    CONFIG = "config"
    WORKLOAD = "workload"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


class Scope(StrEnum):
    """How far a failure reaches: what the walk leaves out because of it."""

    INSTANCE = "instance"
    ZONE = "zone"
    RUNG = "rung"
    REGION = "region"
    LANE = "lane"
    PROJECT = "project"


class Failure(Frozen):
    """A classified failure. `body` is the provider's own text, bounded to 4,000 characters."""

    outcome: Outcome
    scope: Scope
    code: str
    message: str
    body: str = ""
    outcome_known: bool = True
    """False: the call may have taken effect, so repeat with the same request id and look by name."""
    zones_hint: tuple[str, ...] = ()
    """Zones that the answer names as having stock; try them first."""
    metric: str | None = None
    """The quota metric that refused."""
    hint: str = ""


class AttemptRow(Frozen):
    """One create, or one rung that was skipped (then without zone)."""

    attempt_id: str
    lane: str
    machine_type: str
    width: int
    provisioning_model: ProvisioningModel
    zone: str | None
    outcome: Outcome | None
    """None while it is under way."""
    code: str
    message: str = ""
    body: str = ""
    started_at: str = ""
    ended_at: str | None = None
