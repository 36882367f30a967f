"""What a VM takes from which quota, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from widelane.models.catalog import MachineType
from widelane.models.plan import ProvisioningModel
from widelane.simcloud.atlas import Atlas

SSD_DISKS = ("pd-ssd", "pd-balanced", "hyperdisk-balanced")
_FIXED = (
    "CPUS",
    "PREEMPTIBLE_CPUS",
    "PREEMPTIBLE_LOCAL_SSD_GB",
    "LOCAL_SSD_TOTAL_GB",
    "INSTANCES",
    "SSD_TOTAL_GB",
    "DISKS_TOTAL_GB",
    "IN_USE_ADDRESSES",
)
GLOBAL_METRICS = ("GPUS_ALL_REGIONS", "CPUS_ALL_REGIONS")


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The first metric that doesn't admit a VM. `region` is None for a project-wide one."""

    metric: str
    limit: float
    usage: float
    needed: float
    region: str | None


def enforced_metrics(atlas: Atlas) -> frozenset[str]:
    """Every regional metric that has an effect here."""
    named = {
        metric
        for row in atlas.machine_types.values()
        for metric in (row.gpu_quota_standard, row.gpu_quota_preemptible, row.vcpu_quota, row.local_ssd_quota)
        if metric
    }
    return frozenset(named | set(_FIXED))


def regional_needs(
    row: MachineType, model: ProvisioningModel, body: Mapping[str, Any], limits: Mapping[str, float]
) -> dict[str, float]:
    """What one VM takes of the region's metrics, of those that `limits` lists.

    Spot takes the preemptible GPU pool when the project has one listed, else the standard one; flex-start also
    falls back when that pool is zero; vCPU and local SSD fall back to the family's own metric.
    """
    standard = model is ProvisioningModel.STANDARD
    gpu = row.gpu_quota_standard
    if not standard and _has_pool(row.gpu_quota_preemptible, limits, model):
        gpu = row.gpu_quota_preemptible
    cpu, ssd = row.vcpu_quota, row.local_ssd_quota
    if not standard and limits.get("PREEMPTIBLE_CPUS", 0) > 0:
        cpu = "PREEMPTIBLE_CPUS"
    if not standard and limits.get("PREEMPTIBLE_LOCAL_SSD_GB", 0) > 0:
        ssd = "PREEMPTIBLE_LOCAL_SSD_GB"
    needs: dict[str, float] = {"INSTANCES": 1.0, **_disks(body), "IN_USE_ADDRESSES": _addresses(body)}
    for metric, amount in ((gpu, row.gpus), (cpu, row.vcpus), (ssd, row.local_ssd_gib)):
        if metric:
            needs[metric] = needs.get(metric, 0.0) + float(amount)
    return {metric: amount for metric, amount in needs.items() if metric in limits and amount}


def global_needs(row: MachineType, limits: Mapping[str, float]) -> dict[str, float]:
    """What one VM takes of the project's metrics, of those that `limits` lists."""
    needs = {row.global_quota or "GPUS_ALL_REGIONS": float(row.gpus), "CPUS_ALL_REGIONS": float(row.vcpus)}
    return {metric: amount for metric, amount in needs.items() if metric in limits and amount}


def usage(taken: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sum of what live VMs take."""
    total: dict[str, float] = {}
    for needs in taken:
        for metric, amount in needs.items():
            total[metric] = total.get(metric, 0.0) + amount
    return total


def shortfall(
    needs: Mapping[str, float], limits: Mapping[str, float], used: Mapping[str, float], region: str | None
) -> Shortfall | None:
    """The first metric of `needs` that would exceed its limit."""
    for metric, amount in needs.items():
        if used.get(metric, 0.0) + amount > limits[metric]:
            return Shortfall(metric, limits[metric], used.get(metric, 0.0), amount, region)
    return None


def _has_pool(metric: str | None, limits: Mapping[str, float], model: ProvisioningModel) -> bool:
    if metric is None or metric not in limits:
        return False
    return model is ProvisioningModel.SPOT or limits[metric] > 0


def _disks(body: Mapping[str, Any]) -> dict[str, float]:
    total = {"SSD_TOTAL_GB": 0.0, "DISKS_TOTAL_GB": 0.0}
    for disk in body.get("disks", ()):
        made = disk.get("initializeParams", {})
        size = float(made.get("diskSizeGb") or disk.get("diskSizeGb") or 10)
        kind = str(made.get("diskType", "pd-standard")).rpartition("/")[2]
        total["SSD_TOTAL_GB" if kind in SSD_DISKS else "DISKS_TOTAL_GB"] += size
    return total


def _addresses(body: Mapping[str, Any]) -> float:
    return float(sum(len(card.get("accessConfigs", ())) for card in body.get("networkInterfaces", ())))
