"""Which zones, regions and machine types the simulated cloud has: a view on the fact tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from widelane.models.catalog import MachineType, Offer

GCP_LANE = "gcp"


class Tables(Protocol):
    """What is needed of `facts.catalog()`."""

    @property
    def machine_types(self) -> Mapping[str, MachineType]:
        """By name."""
        ...

    @property
    def offers(self) -> Mapping[str, Sequence[Offer]]:
        """By machine type, in the order of the table."""
        ...


class Atlas:
    """Machine types, and where each is offered."""

    def __init__(self, tables: Tables) -> None:
        self.machine_types = {name: row for name, row in tables.machine_types.items() if row.lane == GCP_LANE}
        self._zones: dict[str, set[str]] = {}
        for name in self.machine_types:
            for offer in tables.offers.get(name, ()):
                self._zones.setdefault(offer.zone, set()).add(name)

    @property
    def zones(self) -> tuple[str, ...]:
        """Every zone, sorted."""
        return tuple(sorted(self._zones))

    @property
    def regions(self) -> tuple[str, ...]:
        """Every region, sorted."""
        return tuple(sorted({region_of(zone) for zone in self._zones}))

    def zones_of(self, region: str) -> tuple[str, ...]:
        """The zones of a region, sorted."""
        return tuple(zone for zone in self.zones if region_of(zone) == region)

    def offered(self, machine_type: str) -> tuple[str, ...]:
        """The zones that offer a machine type, sorted."""
        return tuple(zone for zone in self.zones if machine_type in self._zones[zone])

    def in_zone(self, zone: str) -> tuple[MachineType, ...]:
        """What a zone offers, by name; nothing for an unknown zone."""
        return tuple(self.machine_types[name] for name in sorted(self._zones.get(zone, ())))

    def find(self, zone: str, machine_type: str) -> MachineType | None:
        """The machine type when that zone offers it."""
        return self.machine_types[machine_type] if machine_type in self._zones.get(zone, ()) else None


def region_of(zone: str) -> str:
    """us-central1-a is in us-central1."""
    return zone.rpartition("-")[0]
