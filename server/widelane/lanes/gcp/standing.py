"""How an accepted create stands, read from the operation and the instance. Pure; times come in as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from widelane.lanes.gcp import answer
from widelane.lanes.gcp.bodies import ATTEMPT, label_value
from widelane.lanes.gcp.classify import classify
from widelane.lanes.protocol import Granted, Launch, Machine, MachineState, Pending, Progress
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.plan import ProvisioningModel

UNSEEN_SECONDS = 120.0
"""How long after its insert an instance may be missing from reads and still come."""
_MOST_OF_THE_WAIT = 0.8

_STATES = {
    "PENDING": MachineState.QUEUED,
    "PROVISIONING": MachineState.STARTING,
    "STAGING": MachineState.STARTING,
    "REPAIRING": MachineState.STARTING,
    "RUNNING": MachineState.RUNNING,
    "PENDING_STOP": MachineState.STOPPING,
    "STOPPING": MachineState.STOPPING,
    "SUSPENDING": MachineState.STOPPING,
    "DEPROVISIONING": MachineState.STOPPING,
    "STOPPED": MachineState.STOPPED,
    "SUSPENDED": MachineState.STOPPED,
    "TERMINATED": MachineState.STOPPED,
}


def machine(document: Mapping[str, Any], progress: str = "") -> Machine:
    """An instance document as a machine. A state that isn't known yet counts as starting."""
    labels: dict[str, str] = dict(document.get("labels", {}))
    return Machine(
        name=str(document.get("name", "")),
        zone=_last(document.get("zone")),
        id=str(document.get("id", "")),
        state=_STATES.get(str(document.get("status", "")), MachineState.STARTING),
        machine_type=_last(document.get("machineType")),
        provisioning_model=document.get("scheduling", {}).get("provisioningModel", "STANDARD"),
        attempt_id=labels.get(ATTEMPT, ""),
        labels=labels,
        created_at=str(document.get("creationTimestamp", "")),
        progress=progress,
    )


def is_ours(launch: Launch, found: Machine) -> bool:
    """Whether a machine of the launch's name came from this very attempt."""
    return found.attempt_id == label_value(launch.attempt_id)


def stands(launch: Launch, found: Machine, operation: str, *, done: bool) -> Progress:
    """What an existing machine means for its launch; `done`: its insert has ended.

    One that ran already is granted, whatever it is now. One that ends before its insert does never ran: the
    operation will say why.
    """
    if found.state is MachineState.QUEUED:
        return Pending(operation, queued=True)
    if found.state is MachineState.STARTING or (found.state is not MachineState.RUNNING and not done):
        return Pending(operation, queued=False)
    wanted = (launch.rung.machine_type, launch.rung.provisioning_model.value)
    got = (found.machine_type, found.provisioning_model)
    if got == wanted:
        return Granted(found)
    return Failure(
        outcome=Outcome.CONFIG,
        scope=Scope.RUNG,
        code="REALIZED_MISMATCH",
        message=f"asked for {wanted[0]} {wanted[1]}, the service made {got[0]} {got[1]}",
    )


def queues(launch: Launch) -> bool:
    """Whether the create waits for stock instead of being refused."""
    return launch.rung.provisioning_model is ProvisioningModel.FLEX_START and launch.wait_seconds > 0


def failed(launch: Launch, operation: Mapping[str, Any]) -> Failure:
    """Judge an operation that is DONE with an error; a stock-out after the wait is the end of the queue."""
    failure = classify(answer.operation(operation))
    if not queues(launch):
        return failure
    if "OPERATION_CANCEL" in failure.code:
        return failure.model_copy(update={"outcome": Outcome.QUEUE_VANISHED, "scope": Scope.RUNG})
    if failure.outcome is not Outcome.CAPACITY:
        return failure
    took = _between(operation.get("insertTime") or operation.get("startTime"), operation.get("endTime"))
    if took is None or took.total_seconds() < launch.wait_seconds * _MOST_OF_THE_WAIT:
        return failure
    return failure.model_copy(update={"outcome": Outcome.QUEUE_EXPIRED, "scope": Scope.RUNG})


def still_may_come(operation: Mapping[str, Any], now: datetime) -> bool:
    """Whether a missing instance is young enough to just not show yet."""
    age = _between(operation.get("insertTime") or operation.get("startTime"), now.isoformat())
    return age is not None and age.total_seconds() < UNSEEN_SECONDS


def gone(launch: Launch, preempted: bool) -> Failure:
    """The create was accepted, and its instance isn't there."""
    if preempted:
        outcome, code, scope = Outcome.PREEMPTED, "PREEMPTED", Scope.ZONE
    elif launch.rung.provisioning_model is ProvisioningModel.FLEX_START:
        outcome, code, scope = Outcome.QUEUE_VANISHED, "QUEUE_VANISHED", Scope.RUNG
    else:
        outcome, code, scope = Outcome.TRANSIENT, "INSTANCE_GONE", Scope.INSTANCE
    return Failure(
        outcome=outcome,
        scope=scope,
        code=code,
        message=f"instance {launch.name} of an accepted create isn't in {launch.zone}",
    )


def _between(first: object, last: object) -> timedelta | None:
    try:
        return datetime.fromisoformat(str(last)) - datetime.fromisoformat(str(first))
    except (ValueError, TypeError):
        return None


def _last(link: object) -> str:
    return str(link or "").rpartition("/")[2]
