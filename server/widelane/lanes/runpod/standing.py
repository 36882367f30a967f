"""What a pod means: as a machine, and for the create that asked for it. Pure; times come in as arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from widelane.lanes.protocol import Granted, Launch, Machine, MachineState, Pending, Progress
from widelane.lanes.runpod import answer
from widelane.lanes.runpod.classify import classify
from widelane.lanes.runpod.pods import ATTEMPT, OURS, Pod, PodStatus, pod_graphql, pod_v2
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.plan import ProvisioningModel

LANE = "runpod"

_STATES = {
    PodStatus.PROVISIONING: MachineState.STARTING,
    PodStatus.STARTING: MachineState.STARTING,
    PodStatus.RUNNING: MachineState.RUNNING,
    PodStatus.EXITED: MachineState.STOPPED,
    PodStatus.ERROR: MachineState.STOPPED,
    PodStatus.TERMINATED: MachineState.STOPPED,
}
_BEGINNING = (PodStatus.PROVISIONING, PodStatus.STARTING)


def is_marked(pod: Pod) -> bool:
    """Whether this program made it."""
    return pod.labels.get(OURS) == "1"


def is_ours(launch: Launch, pod: Pod) -> bool:
    """Whether a pod of the launch's name came from this very attempt."""
    return is_marked(pod) and pod.labels.get(ATTEMPT) == launch.attempt_id


def machine(pod: Pod, progress: str = "") -> Machine:
    """A pod as a machine. Where the service doesn't say the GPU type, the one that was asked for stands."""
    interruptible = ProvisioningModel.SPOT if pod.interruptible else ProvisioningModel.STANDARD
    return Machine(
        name=pod.name,
        zone=pod.place or LANE,
        id=pod.id,
        state=_STATES[pod.status],
        machine_type=pod.gpu or pod.labels.get("widelane-gpu", ""),
        provisioning_model=interruptible.value,
        attempt_id=pod.labels.get(ATTEMPT, "") if is_marked(pod) else "",
        labels=pod.labels,
        created_at=pod.created_at,
        progress=progress,
        end=trouble_of(pod) if _STATES[pod.status] is MachineState.STOPPED else None,
    )


def stands(launch: Launch, pod: Pod) -> Progress:
    """What an existing pod of that name means for its launch.

    One that ran already is granted, whatever it is now; a stopped pod is never started again.
    """
    if not is_ours(launch, pod):
        return _namesake(pod)
    trouble = trouble_of(pod)
    if trouble is not None and trouble.outcome is not Outcome.PREEMPTED:
        return trouble
    if pod.status in _BEGINNING:
        return Pending(pod.id, queued=False)
    wanted = (launch.zone, launch.rung.width)
    got = (pod.gpu or wanted[0], wanted[1] if pod.gpus is None else pod.gpus)
    if got == wanted or pod.status is PodStatus.EXITED:
        return Granted(machine(pod))
    return Failure(
        outcome=Outcome.CONFIG,
        scope=Scope.ZONE,
        code="REALIZED_MISMATCH",
        message=f"asked for {wanted[1]} x {wanted[0]}, the service made {got[1]} x {got[0]}",
    )


def trouble_of(pod: Pod) -> Failure | None:
    """What is wrong with a pod that exists; None while nothing is."""
    if pod.status is PodStatus.ERROR:
        message = f"pod {pod.id} is in status ERROR: its image or its container can't start"
        return Failure(outcome=Outcome.WORKLOAD, scope=Scope.LANE, code="POD_ERROR", message=message)
    if pod.status is PodStatus.EXITED and pod.interruptible:
        message = f"the service took the interruptible pod {pod.id} back"
        return Failure(outcome=Outcome.PREEMPTED, scope=Scope.ZONE, code="POD_INTERRUPTED", message=message)
    if pod.gpus == 0 and pod.status is not PodStatus.EXITED:
        message = f"pod {pod.id} came without a GPU"
        return Failure(outcome=Outcome.CAPACITY, scope=Scope.ZONE, code="ZERO_GPUS", message=message)
    return None


def chosen(launch: Launch, pods: list[Pod]) -> Pod:
    """The pod that counts among several of one name: ours before others', one that lives before one that doesn't."""
    return min(
        pods, key=lambda pod: (not is_ours(launch, pod), _STATES[pod.status] is MachineState.STOPPED, pod.created_at)
    )


def judge(document: Mapping[str, Any]) -> Failure | None:
    """Judge an answer as it was noted down; None when it is no failure.

    `document` holds `api` (v2, graphql), `http_status`, `body` and perhaps `headers`; or `exc_type` and `message`.
    """
    if "exc_type" in document:
        failed = answer.raised(str(document["exc_type"]), str(document.get("message", "")))
        query = failed.code == "QueryError"
        return classify(answer.graphql(200, {"errors": [{"message": failed.text}]}) if query else failed)
    status = int(document.get("http_status", 200))
    headers = document.get("headers")
    body = document.get("body", "")
    read = answer.v2 if document.get("api") == "v2" else answer.graphql
    pod = _pod_in(body) if status < 300 else None
    if pod is not None:
        return trouble_of(pod)
    return classify(read(status, body, headers))


def _pod_in(body: object) -> Pod | None:
    """The pod that a successful answer holds."""
    document = answer.inside(body)
    if "errors" in document:
        return None
    inner = answer.inside(document, "data", "pod")
    if inner:
        return pod_graphql(inner)
    return pod_v2(document) if "id" in document else None


def _namesake(pod: Pod) -> Failure:
    owner = f"attempt {pod.labels[ATTEMPT]}" if is_marked(pod) and ATTEMPT in pod.labels else "somebody else"
    what = f"pod {pod.id} of the name {pod.name} belongs to {owner}"
    if _STATES[pod.status] is MachineState.STOPPED:
        return Failure(
            outcome=Outcome.CONFIG,
            scope=Scope.LANE,
            code="STOPPED_NAMESAKE",
            message=f"{what} and is stopped; it was neither started nor deleted, and no other was made",
            hint=f"terminate {pod.id} in the RunPod console, or rename it there, and dispatch again",
        )
    return Failure(outcome=Outcome.CONFLICT, scope=Scope.INSTANCE, code="NOT_OURS", message=what)
