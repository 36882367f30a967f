"""What the simulated cloud remembers: instances and operations. Times are simulated seconds since it began."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from widelane.models.plan import ProvisioningModel
from widelane.simcloud.scenario import Combination

Json = dict[str, Any]


class Status(StrEnum):
    """Life cycle states of an instance, in the API's words."""

    PENDING = "PENDING"
    PROVISIONING = "PROVISIONING"
    STAGING = "STAGING"
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    TERMINATED = "TERMINATED"


class Ending(StrEnum):
    """Why an instance is on its way out."""

    DELETE = "delete"
    STOP = "stop"
    PREEMPTED = "compute.instances.preempted"
    GUEST = "compute.instances.guestTerminate"
    HOST = "compute.instances.hostError"


@dataclass(slots=True)
class Process:
    """The first process of a VM as the host sees it; `start` (clock ticks since boot) tells it from later ones."""

    pid: int
    start: int
    isolation: str


@dataclass(slots=True)
class Instance:
    """One instance, from its insert to its removal."""

    name: str
    zone: str
    id: str
    machine_type: str
    model: ProvisioningModel
    body: Json
    """The request's own resource; what isn't interpreted is echoed."""
    created: float
    insert_operation: str
    status: Status = Status.PROVISIONING
    labels: dict[str, str] = field(default_factory=dict[str, str])
    label_version: int = 1
    granted: bool = False
    """Holds stock and quota."""
    regional: dict[str, float] = field(default_factory=dict[str, float])
    project_wide: dict[str, float] = field(default_factory=dict[str, float])
    refusal: Json | None = None
    """How the insert's operation will end: {"status", "errors"}."""
    due: float | None = None
    """When PROVISIONING or STOPPING ends."""
    arrives: float | None = None
    expires: float | None = None
    started: float | None = None
    stopped: float | None = None
    preempt_at: float | None = None
    kill_at: float | None = None
    preempted: bool = False
    ending: Ending | None = None
    end_operations: list[str] = field(default_factory=list[str])
    remove: bool = False
    """Whether the ending removes the instance or leaves it TERMINATED."""
    port: int = 0
    """Of its metadata server; 0 while it has none."""
    process: Process | None = None
    tokens: dict[str, float] = field(default_factory=dict[str, float])
    """Access tokens handed out, with the time each expires."""
    guest_attributes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

    @property
    def key(self) -> str:
        """What the state files it under."""
        return f"{self.zone}/{self.name}"

    @property
    def combination(self) -> Combination:
        """What it takes from stock."""
        return Combination(self.zone, self.machine_type, self.model)

    @property
    def live(self) -> bool:
        """Neither stopped nor gone."""
        return self.status is not Status.TERMINATED

    @property
    def scheduling(self) -> Json:
        """As requested."""
        found: Json = self.body.get("scheduling", {})
        return found

    @property
    def metadata(self) -> dict[str, str]:
        """Its metadata by key."""
        items = self.body.get("metadata", {}).get("items", ())
        return {item["key"]: str(item.get("value", "")) for item in items}

    @property
    def run_limit(self) -> float | None:
        """`maxRunDuration` in seconds."""
        return seconds(self.scheduling.get("maxRunDuration"))

    @property
    def ends_at(self) -> float | None:
        """When its run limit is reached; None before it runs, and without a limit."""
        return None if self.started is None or self.run_limit is None else self.started + self.run_limit

    @property
    def deletes_itself(self) -> bool:
        """Whether termination by the service removes it (`instanceTerminationAction`)."""
        return bool(self.scheduling.get("instanceTerminationAction") == "DELETE")


@dataclass(slots=True)
class Operation:
    """One zone operation. RUNNING until `ended` is set."""

    name: str
    id: str
    zone: str
    kind: str
    target: str
    """Name of the instance."""
    target_id: str
    request_id: str
    user: str
    inserted: float
    ended: float | None = None
    http_status: int = 200
    errors: list[Json] = field(default_factory=list[Json])
    note: str = ""

    @property
    def done(self) -> bool:
        """Whether it ended, well or not."""
        return self.ended is not None


def seconds(duration: Json | None) -> float | None:
    """A REST Duration in seconds: {"seconds": "3600", "nanos": 0}."""
    if not duration:
        return None
    return float(duration.get("seconds", 0)) + float(duration.get("nanos", 0)) / 1e9
