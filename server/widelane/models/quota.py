"""What quotas say of a rung."""

from __future__ import annotations

from enum import StrEnum

from widelane.models.base import Frozen
from widelane.models.plan import ProvisioningModel


class Admits(StrEnum):
    """Three-valued: unknown is neither yes nor no."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class QuotaBinding(Frozen):
    """The metric that decides, in the metric's own unit (GPUs, vCPUs, GB)."""

    metric: str
    limit: float | None
    usage: float | None
    needed: float
    region: str = ""


class QuotaMetric(Frozen):
    """One metric as the service listed it."""

    metric: str
    limit: float
    usage: float


class RegionQuota(Frozen):
    """What one region answered; `metrics` None means that it answered without quotas."""

    region: str
    metrics: tuple[QuotaMetric, ...] | None


class QuotaSnapshot(Frozen):
    """Quotas of one project at one moment. A region that isn't here was not asked."""

    project: str
    taken_at: str
    regions: tuple[RegionQuota, ...]
    global_metrics: tuple[QuotaMetric, ...] | None


class RungQuota(Frozen):
    """Whether one rung is admitted, and by what."""

    machine_type: str
    width: int
    provisioning_model: ProvisioningModel
    admits: Admits
    binding: QuotaBinding | None
    region: str = ""


class PoolQuota(Frozen):
    """What one pool of one region admits: `preemptible` (spot and flex-start) or `standard`."""

    region: str
    pool: str
    largest_width: int
    """Largest width that is admitted (0: none)."""
    largest_possible_width: int
    """Largest width that no metric denies."""


class QuotaReport(Frozen):
    """The answer of quota_check."""

    project: str
    taken_at: str
    largest_width: int
    """Largest width that is admitted (0: none)."""
    largest_possible_width: int = 0
    """Largest width that no metric denies: admitted or unknown."""
    rungs: tuple[RungQuota, ...]
    note: str = ""
    pools: tuple[PoolQuota, ...] = ()
    age_seconds: int | None = None
    """How long ago the quotas were read; None when that isn't known."""
