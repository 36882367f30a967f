"""What a verdict is given under: tables, policy, lanes and quotas. Everything that is not the plan."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from widelane.facts import Catalog, Policy
from widelane.models.catalog import Intent, MachineType
from widelane.models.quota import QuotaSnapshot
from widelane.models.room import LaneRoom
from widelane.models.verdict import Rung

GCP = "gcp"
LOCAL = "local"
RUNPOD = "runpod"
_REMEMBERED = 10_000
_SHEETS = 256


@dataclass(frozen=True)
class Bench:
    """The tables and the settings that a plan is judged with.

    `lanes` are the configured lanes in any order, each a kind ("slurm") or a kind with a name ("slurm.fir"); with none,
    Google Cloud is shown. Without `regions` the policy's are taken, without `quotas` every quota is unknown.
    `disk_gib` is the configured boot disk; `rooms` is what is known of lanes whose machines are in no table.
    """

    catalog: Catalog
    policy: Policy
    intents: Mapping[str, Intent]
    lanes: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    quotas: QuotaSnapshot | None = None
    disk_gib: int | None = None
    external_address: bool = True
    rooms: Mapping[str, LaneRoom] = field(default_factory=dict[str, LaneRoom])
    rungs: dict[Hashable, tuple[Rung, ...]] = field(
        default_factory=dict[Hashable, tuple[Rung, ...]], compare=False, repr=False
    )
    """Rungs that were worked out already; a memory of pure results, never an input."""
    notes: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any], compare=False, repr=False)
    """Other results worked out already, as above."""
    sheets: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any], compare=False, repr=False)
    """What the widths of the newest works give, as above."""

    @property
    def where(self) -> tuple[str, ...]:
        """Regions whose zones are tried."""
        return self.regions or self.policy.regions

    def forget(self) -> None:
        """Empty the memory when it has grown large: a bench may live as long as a server."""
        if len(self.rungs) + len(self.notes) > _REMEMBERED:
            self.rungs.clear()
            self.notes.clear()

    def keep_sheet(self, key: Hashable, sheet: object) -> None:
        """Remember a sheet. Few are kept: each holds much, and a plan repeats the works that it has just had."""
        if len(self.sheets) >= _SHEETS:
            self.sheets.clear()
        self.sheets[key] = sheet

    def machines(self, names: tuple[str, ...], width: int) -> tuple[tuple[MachineType, ...], ...]:
        """For each family (or machine type) of `names`, its whole-GPU machines of that width, smallest first."""
        key = ("machines", names, width)
        found = self.notes.get(key)
        if found is None:
            types = self.catalog.machine_types.values()
            found = tuple(
                tuple(
                    sorted(
                        (m for m in types if m.gpus == width and m.gpu_share is None and name in (m.family, m.name)),
                        key=lambda machine: machine.memory_gib,
                    )
                )
                for name in names
            )
            self.notes[key] = found
        return found
