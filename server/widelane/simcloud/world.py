"""What every part of the simulated service works on: scenario, tables, state, clock and the host's machines."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from widelane.simcloud import quota
from widelane.simcloud.atlas import Atlas, region_of
from widelane.simcloud.records import Instance, Json, Operation, Process
from widelane.simcloud.scenario import Combination, Scenario
from widelane.simcloud.smi import Gpu, gpus_of
from widelane.simcloud.state import State
from widelane.simcloud.timebase import Timebase

SYSTEM = "system@google.com"


class Machines(Protocol):
    """The host's side of VMs. Calls return at once; `advance` of the engine asks again."""

    def open_port(self, port: int) -> int:
        """Listen for a metadata server; 0 chooses. The port."""
        ...

    def close_port(self, port: int) -> None:
        """Stop listening."""
        ...

    def boot(self, instance: Instance, gpus: tuple[Gpu, ...]) -> None:
        """Start the VM unless it was started before; repeating it is harmless."""
        ...

    def process(self, instance: Instance) -> Process | None:
        """The VM's first process once it is there, also when an earlier server started it."""
        ...

    def failed(self, instance: Instance) -> str:
        """Why the VM could not be started; "" when it wasn't tried or it worked."""
        ...

    def alive(self, process: Process) -> bool:
        """Whether that very process lives."""
        ...

    def kill(self, instance: Instance) -> bool:
        """One round of killing the VM and all in it; True when nothing of it is left."""
        ...

    def discard(self, instance: Instance) -> None:
        """Remove the VM's disk."""
        ...

    def serial(self, instance: Instance) -> str:
        """What the VM wrote to its serial port so far."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """One simulated project."""

    scenario: Scenario
    atlas: Atlas
    state: State
    time: Timebase
    machines: Machines
    cases: Mapping[str, Json]
    """The error table by case name."""

    def now(self) -> float:
        """Simulated seconds since the cloud began."""
        return self.time.elapsed()

    def path(self, zone: str, name: str) -> str:
        """projects/P/zones/Z/instances/N."""
        return f"projects/{self.scenario.project}/zones/{zone}/instances/{name}"

    def new_id(self) -> str:
        """A decimal id of 64 bits, as the service gives; later ones are larger."""
        number = self.state.count("id")
        return str(10**18 + (number << 24) + int(_hash(f"{number}")[:6], 16))

    def new_operation(self, kind: str, instance: Instance, request_id: str = "", user: str = SYSTEM) -> Operation:
        """A running operation on an instance."""
        identity = self.new_id()
        digest = _hash(identity)
        now = self.now()
        millis = int((self.time.began.timestamp() + now) * 1000)
        name = f"operation-{millis}-{digest[:13]}-{digest[13:21]}-{digest[21:29]}"
        made = Operation(name, identity, instance.zone, kind, instance.name, instance.id, request_id, user, now)
        self.state.save(made)
        if request_id:
            self.state.remember_request(request_id, made.name)
        return made

    def finish(self, name: str, at: float, outcome: Json | None = None) -> None:
        """End an operation, well or with {"status", "errors"}; an ended one stays as it is."""
        operation = self.state.operations[name]
        if operation.done:
            return
        operation.ended = at
        if outcome is not None:
            operation.http_status, operation.errors = int(outcome["status"]), list(outcome["errors"])
        self.state.save(operation)

    def available(self, wanted: Combination) -> int:
        """Machines in stock now."""
        return max(0, self.scenario.rule_for(wanted).count + self.state.stock.get(str(wanted), 0))

    def move_stock(self, wanted: Combination, change: int) -> None:
        """Take from stock (-1) or add to it."""
        self.state.set_stock(str(wanted), self.state.stock.get(str(wanted), 0) + change)

    def elsewhere(self, wanted: Combination) -> tuple[str, ...]:
        """Other zones that have the same machine in stock."""
        others = (zone for zone in self.atlas.offered(wanted.machine_type) if zone != wanted.zone)
        return tuple(
            zone for zone in others if self.available(Combination(zone, wanted.machine_type, wanted.model)) > 0
        )

    def region_usage(self, region: str) -> dict[str, float]:
        """What live VMs take of a region's quotas."""
        live = (each for each in self.state.instances.values() if each.granted and region_of(each.zone) == region)
        return quota.usage(each.regional for each in live)

    def global_usage(self) -> dict[str, float]:
        """What live VMs take of the project's quotas."""
        return quota.usage(each.project_wide for each in self.state.instances.values() if each.granted)

    def shortfall(self, instance: Instance) -> quota.Shortfall | None:
        """The first quota that doesn't admit this instance now."""
        needs = self.needs(instance)
        region = region_of(instance.zone)
        whole = quota.shortfall(needs[1], self.scenario.global_quotas, self.global_usage(), None)
        return whole or quota.shortfall(needs[0], self._limits(region), self.region_usage(region), region)

    def needs(self, instance: Instance) -> tuple[dict[str, float], dict[str, float]]:
        """What an instance takes of its region's and of the project's quotas."""
        row = self.atlas.machine_types[instance.machine_type]
        limits = self._limits(region_of(instance.zone))
        regional = quota.regional_needs(row, instance.model, instance.body, limits)
        return regional, quota.global_needs(row, self.scenario.global_quotas)

    def gpus(self, instance: Instance) -> tuple[Gpu, ...]:
        """The GPUs that the VM shows."""
        row = self.atlas.machine_types[instance.machine_type]
        count = self.scenario.visible_gpus.get(row.name, row.gpus)
        return gpus_of(instance.id, row.gpu, count, row.gpu_mem_gib)

    def _limits(self, region: str) -> dict[str, float]:
        return self.scenario.quotas.get(region, {})


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
