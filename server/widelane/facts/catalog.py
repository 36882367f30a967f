"""Machine types, where they are offered, and what they cost, from the tables in `data/`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from widelane.facts.intents import load_intents
from widelane.facts.table import DATA, Row, read_table
from widelane.models.catalog import Intent, MachineType, Offer, PodGpu, Price
from widelane.models.plan import ProvisioningModel

_MACHINE_COLUMNS = (
    "machine_type",
    "family",
    "lane",
    "vcpus",
    "memory_gib",
    "gpu",
    "gpus",
    "gpu_mem_gib",
    "local_ssd_gib",
    "provisioning_models",
    "gpu_quota_standard",
    "gpu_quota_preemptible",
    "vcpu_quota",
    "local_ssd_quota",
    "global_quota",
    "notes",
    "source",
    "dated",
)
_ZONE_COLUMNS = ("machine_types", "region", "zone", "source", "dated")
_ENV_COLUMNS = ("lane", "variables", "why")
_POD_COLUMNS = ("gpu", "memory_gib", "why", "source", "dated")
_PRICE_COLUMNS = ("machine_type", "region", "on_demand", "spot", "source", "dated")
_MODELS: dict[str, ProvisioningModel | None] = {
    **{model.value: model for model in ProvisioningModel},
    "RESERVATION_BOUND": None,
}


@dataclass(frozen=True)
class Catalog:
    """What can be had. Machine types by name, offers by machine type in the order of the zone table."""

    machine_types: Mapping[str, MachineType]
    offers: Mapping[str, tuple[Offer, ...]]
    intents: Mapping[str, Intent]
    folder: Path

    @cached_property
    def prices(self) -> Mapping[tuple[str, str], Price]:
        """Prices by (machine type, region), read on first use; only ever reported."""
        prices: dict[tuple[str, str], Price] = {}
        for row in read_table(self.folder, "prices.csv", _PRICE_COLUMNS):
            key = (_known(row, "machine_type", self.machine_types), row.text("region"))
            if key in prices:
                raise row.fail("region", f"{key[0]} in {key[1]} has a price already")
            prices[key] = Price(
                machine_type=key[0],
                region=key[1],
                on_demand=_dollars(row, "on_demand"),
                spot=_dollars(row, "spot"),
                dated=row.text("dated"),
            )
        return prices

    @cached_property
    def pod_gpus(self) -> tuple[PodGpu, ...]:
        """GPU types that RunPod rents by count, in the order to try them."""
        found: dict[str, PodGpu] = {}
        for row in read_table(self.folder, "pod_gpus.csv", _POD_COLUMNS):
            gpu = row.text("gpu")
            if gpu in found:
                raise row.fail("gpu", f"{gpu} is listed twice")
            for column in ("why", "source", "dated"):
                row.text(column)
            found[gpu] = PodGpu(gpu=gpu, memory_gib=row.number("memory_gib", 1, 10_000))
        return tuple(found.values())

    @cached_property
    def lane_env(self) -> Mapping[str, tuple[str, ...]]:
        """By kind of lane ("*": every one): the environment variables that it sets, with * for any ending."""
        found: dict[str, tuple[str, ...]] = {}
        for row in read_table(self.folder, "lane_env.csv", _ENV_COLUMNS):
            row.text("why")
            names = row.words("variables")
            for name in names:
                if not name.removesuffix("*").replace("_", "").isalnum():
                    raise row.fail("variables", f"{name} is no name of a variable")
            lane = row.text("lane")
            found[lane] = (*found.get(lane, ()), *names)
        return found

    def sets(self, lane: str, variable: str) -> bool:
        """Whether a kind of lane sets an environment variable for a unit."""
        patterns = (*self.lane_env.get("*", ()), *self.lane_env.get(lane, ()))
        return any(fnmatchcase(variable, pattern) for pattern in patterns)


@cache
def catalog() -> Catalog:
    """The catalog that ships with the program."""
    return load_catalog(DATA)


def load_catalog(folder: Path) -> Catalog:
    """The catalog in `folder`. Raises `TableError` with file, row and column."""
    machine_types: dict[str, MachineType] = {}
    for row in read_table(folder, "machine_types.csv", _MACHINE_COLUMNS):
        name = row.text("machine_type")
        if name in machine_types:
            raise row.fail("machine_type", f"{name} is listed twice")
        machine_types[name] = _machine_type(row, name)
    return Catalog(machine_types, _offers(folder, machine_types), load_intents(None, "", folder, machine_types), folder)


def gce_errors() -> dict[str, Any]:
    """Error bodies of the Compute Engine API with the class and scope of each."""
    cases: dict[str, Any] = json.loads((DATA / "gce_errors.json").read_text(encoding="utf-8"))
    return cases


def _machine_type(row: Row, name: str) -> MachineType:
    models: set[ProvisioningModel] = set()
    for word in row.words("provisioning_models"):
        if word not in _MODELS:
            raise row.fail("provisioning_models", f"{word!r} is not one of {', '.join(_MODELS)}")
        model = _MODELS[word]
        if model is not None:
            models.add(model)
    gpus, share = _gpus(row)
    row.text("source")
    row.text("dated")
    return MachineType(
        name=name,
        family=row.text("family"),
        lane=row.text("lane"),
        vcpus=row.whole("vcpus", 1, 10_000),
        memory_gib=row.number("memory_gib", 0.1, 1e6),
        gpu=row.text("gpu") if gpus or share else row.raw("gpu"),
        gpus=gpus,
        gpu_share=share,
        gpu_mem_gib=row.number("gpu_mem_gib", 1 if gpus else 0, 10_000),
        local_ssd_gib=row.whole("local_ssd_gib", 0, 1_000_000),
        provisioning_models=frozenset(models),
        gpu_quota_standard=row.optional("gpu_quota_standard"),
        gpu_quota_preemptible=row.optional("gpu_quota_preemptible"),
        vcpu_quota=row.optional("vcpu_quota"),
        local_ssd_quota=row.optional("local_ssd_quota"),
        global_quota=row.optional("global_quota"),
        source=row.text("source"),
    )


def _gpus(row: Row) -> tuple[int, float | None]:
    """Whole GPUs, and the share of one that a fractional type has ("1/8")."""
    text = row.raw("gpus")
    above, slash, below = text.partition("/")
    if not slash:
        return row.whole("gpus", 0, 64), None
    if not (above.isdecimal() and below.isdecimal() and 0 < int(above) < int(below)):
        raise row.fail("gpus", f"must be a whole number or a share such as 1/8, not {text!r}")
    return 0, int(above) / int(below)


def _offers(folder: Path, machine_types: Mapping[str, MachineType]) -> dict[str, tuple[Offer, ...]]:
    offers: dict[str, list[Offer]] = {name: [] for name in machine_types}
    for row in read_table(folder, "zones.csv", _ZONE_COLUMNS):
        region, zone, source = row.text("region"), row.text("zone"), row.text("source")
        row.text("dated")
        if not zone.startswith(f"{region}-"):
            raise row.fail("zone", f"{zone} is not a zone of {region}")
        for name in _names(row, machine_types):
            if any(offer.zone == zone for offer in offers[name]):
                raise row.fail("zone", f"{name} is listed in {zone} twice")
            offers[name].append(Offer(machine_type=name, region=region, zone=zone, source=source))
    return {name: tuple(found) for name, found in offers.items()}


def _names(row: Row, machine_types: Mapping[str, MachineType]) -> list[str]:
    """Expand "a2-highgpu-1g/2g" (sizes after the last dash) and "g2-standard-*"."""
    pattern = row.text("machine_types")
    if "*" in pattern:
        names = [name for name in machine_types if fnmatchcase(name, pattern)]
        if not names:
            raise row.fail("machine_types", f"no machine type matches {pattern!r}")
        return names
    stem, dash, sizes = pattern.rpartition("-")
    names = [f"{stem}{dash}{size}" for size in sizes.split("/")]
    for name in names:
        if name not in machine_types:
            raise row.fail("machine_types", f"{name} is not in machine_types.csv")
    return names


def _known(row: Row, column: str, machine_types: Mapping[str, MachineType]) -> str:
    name = row.text(column)
    if name not in machine_types:
        raise row.fail(column, f"{name} is not in machine_types.csv")
    return name


def _dollars(row: Row, column: str) -> float | None:
    return row.number(column, 0, 1e6) if row.raw(column) else None
