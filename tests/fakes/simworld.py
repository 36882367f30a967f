"""A simulated cloud inside the test: its clock stands still until told, and its VMs are only noted down."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from widelane.facts.catalog import catalog
from widelane.simcloud import actions
from widelane.simcloud.atlas import Atlas
from widelane.simcloud.lifecycle import advance
from widelane.simcloud.records import Instance, Operation, Process
from widelane.simcloud.scenario_file import parse
from widelane.simcloud.server import error_cases
from widelane.simcloud.smi import Gpu
from widelane.simcloud.state import State
from widelane.simcloud.world import World

ZONE = "us-central1-a"
CLOUD_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ATLAS = Atlas(catalog())
CASES = error_cases()


@dataclass
class StandingTime:
    """Simulated time that only `skip` moves."""

    seconds: float = 0.0
    rate: float = 1.0
    began: datetime = datetime(2026, 12, 1, tzinfo=UTC)

    def elapsed(self) -> float:
        return self.seconds

    def skip(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class NotedMachines:
    """VMs as a list of who lives. `stubborn`: rounds of killing that a VM survives."""

    running: dict[str, Process] = field(default_factory=dict)
    ports: set[int] = field(default_factory=set)
    shown: dict[str, int] = field(default_factory=dict)
    discarded: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    booted: dict[str, Process] = field(default_factory=dict)
    stubborn: int = 0
    _last: int = 100

    def open_port(self, port: int) -> int:
        self._last += 1
        self.ports.add(port or self._last)
        return port or self._last

    def close_port(self, port: int) -> None:
        self.ports.discard(port)

    def boot(self, instance: Instance, gpus: tuple[Gpu, ...]) -> None:
        if instance.name in self.broken or instance.id in self.booted:
            return
        self._last += 1
        self.shown[instance.name] = len(gpus)
        self.booted[instance.id] = self.running[instance.id] = Process(self._last, 1, "noted")

    def process(self, instance: Instance) -> Process | None:
        return self.booted.get(instance.id)

    def failed(self, instance: Instance) -> str:
        return "it can't" if instance.name in self.broken else ""

    def alive(self, process: Process) -> bool:
        return process in self.running.values()

    def kill(self, instance: Instance) -> bool:
        self.stubborn -= 1
        if self.stubborn >= 0:
            return False
        self.running.pop(instance.id, None)
        return True

    def discard(self, instance: Instance) -> None:
        self.discarded.append(instance.name)

    def serial(self, instance: Instance) -> str:
        return f"serial of {instance.name}"


class Cloud:
    """A world with shorthands. `time` and `machines` are the fakes above."""

    def __init__(self, scenario: str, folder: Path) -> None:
        self.time = StandingTime()
        self.machines = NotedMachines()
        self.state = State(folder / "state.sqlite")
        loaded = parse(scenario, "scenario.yaml", ATLAS, CASES)
        self.world = World(loaded, ATLAS, self.state, self.time, self.machines, CASES)

    def pass_time(self, seconds: float, step: float = 1.0) -> None:
        """Let time go by in small steps, as it does."""
        until = self.time.seconds + seconds
        while self.time.seconds < until:
            self.time.seconds = min(until, self.time.seconds + step)
            advance(self.world)

    def insert(self, name: str, machine_type: str = "a2-ultragpu-4g", model: str = "SPOT", **more: Any) -> Operation:
        """An insert that the service accepts; `more`: zone, wait, limit, action, request_id."""
        zone = more.get("zone", ZONE)
        more.setdefault("limit", 3600)
        body = instance_body(name, zone, machine_type, model, **{k: v for k, v in more.items() if k in _SHAPES})
        made = actions.insert(self.world, zone, body, more.get("request_id", ""))
        advance(self.world)
        return made

    def delete(self, name: str, zone: str = ZONE) -> Operation:
        made = actions.delete(self.world, self.at(name, zone), "")
        advance(self.world)
        return made

    def at(self, name: str, zone: str = ZONE) -> Instance:
        return self.state.instances[f"{zone}/{name}"]

    def status(self, name: str, zone: str = ZONE) -> str:
        """The instance's status; "" when there is none."""
        found = self.state.instances.get(f"{zone}/{name}")
        return "" if found is None else found.status.value

    def codes(self, operation: Operation) -> list[str]:
        """Error codes of an operation that must be done."""
        now = self.state.operations[operation.name]
        assert now.done
        return [error["code"] for error in now.errors]


_SHAPES = ("wait", "limit", "action", "labels", "metadata", "scheduling")


def instance_body(name: str, zone: str, machine_type: str, model: str, **more: Any) -> dict[str, Any]:
    """The JSON of an insert: a boot disk, a network card, and a schedule that suits the model."""
    scheduling: dict[str, Any] = {
        "provisioningModel": model,
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
        "maxRunDuration": {"seconds": str(more.get("limit", 86400))},
        "instanceTerminationAction": more.get("action", "DELETE"),
    }
    body: dict[str, Any] = {
        "name": name,
        "machineType": f"zones/{zone}/machineTypes/{machine_type}",
        "labels": more.get("labels", {"widelane": "1"}),
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"diskSizeGb": "100"}}],
        "networkInterfaces": [{"network": "global/networks/default"}],
        "serviceAccounts": more.get("service_accounts", [{"email": "default", "scopes": [CLOUD_SCOPE]}]),
        "scheduling": {**scheduling, **more.get("scheduling", {})},
        "metadata": {"items": [{"key": key, "value": value} for key, value in more.get("metadata", {}).items()]},
    }
    if more.get("wait"):
        body["params"] = {"requestValidForDuration": {"seconds": str(more["wait"])}}
    return body
