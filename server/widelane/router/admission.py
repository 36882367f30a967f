"""Quota admission of a rung: the least of all metrics that it consumes, three-valued, with the one that binds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite, isnan

from widelane.models.catalog import MachineType
from widelane.models.plan import ProvisioningModel
from widelane.models.quota import Admits, QuotaBinding, QuotaMetric, QuotaSnapshot
from widelane.models.verdict import Rung
from widelane.router.bench import GCP, Bench

UNLIMITED = 9.0e18
"""The service writes 9.22337e+18 for no limit."""
PREEMPTIBLE_CPUS = "PREEMPTIBLE_CPUS"
PREEMPTIBLE_LOCAL_SSD = "PREEMPTIBLE_LOCAL_SSD_GB"
DISK = "SSD_TOTAL_GB"
ADDRESSES = "IN_USE_ADDRESSES"

Taken = Mapping[tuple[str, str], float]
"""Amounts by (region, metric); the region of a project-wide metric is ""."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """An amount that a rung takes of the first of `metrics` that has a quota: later ones are fall-backs."""

    metrics: tuple[str, ...]
    needed: float
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class _Answer:
    admits: Admits
    binding: QuotaBinding


def admit(
    ladder: Iterable[Rung], snapshot: QuotaSnapshot | None, bench: Bench, pending: Iterable[Rung] = ()
) -> tuple[Rung, ...]:
    """The ladder with these quotas. `pending` are rungs asked for that the quotas don't count yet.

    A denied rung stays listed; a rung over several regions keeps the zones of those that don't deny it.
    """
    taken = {} if snapshot is None else _taken(pending, snapshot, bench)
    return tuple(admit_rung(rung, snapshot, bench, taken=taken) for rung in ladder)


def admit_rung(
    rung: Rung,
    snapshot: QuotaSnapshot | None,
    bench: Bench,
    *,
    disk_gib: float | None = None,
    taken: Taken | None = None,
) -> Rung:
    """One rung with these quotas."""
    if rung.lane != GCP or snapshot is None or not rung.zones:
        return rung
    answers = region_answers(rung, snapshot, bench, disk_gib=disk_gib, taken=taken)
    best = min(answers.values(), key=lambda answer: _ORDER[answer.admits])
    zones = tuple(
        zone for zone in rung.zones if best.admits is Admits.NO or answers[region_of(zone)].admits is not Admits.NO
    )
    return rung.model_copy(update={"admits": best.admits, "binding_quota": best.binding, "zones": zones})


def region_answers(
    rung: Rung,
    snapshot: QuotaSnapshot,
    bench: Bench,
    *,
    disk_gib: float | None = None,
    taken: Taken | None = None,
) -> dict[str, _Answer]:
    """By region of the rung's zones: whether quota admits it, and the metric that decides."""
    machine = bench.catalog.machine_types[rung.machine_type]
    claims = _claims(machine, rung.provisioning_model, bench, disk_gib)
    return {
        region: _least(
            [_claim_answer(claim, _listed(snapshot, claim, region), region, taken or {}) for claim in claims]
        )
        for region in regions_of((rung,))
    }


def consumption(rung: Rung, bench: Bench) -> Mapping[str, float]:
    """How much a rung takes of each metric, in the metric's unit. The standard GPU pool is not spot's."""
    machine = bench.catalog.machine_types.get(rung.machine_type) if rung.lane == GCP else None
    if machine is None:
        return {}
    claims = _claims(machine, rung.provisioning_model, bench, None)
    found = {metric: claim.needed for claim in claims for metric in claim.metrics}
    if machine.gpu_quota_preemptible in found and machine.gpu_quota_standard is not None:
        found.pop(machine.gpu_quota_standard, None)
    return found


def region_of(zone: str) -> str:
    """us-central1-a is in us-central1."""
    return zone.rpartition("-")[0]


def regions_of(ladder: Iterable[Rung]) -> tuple[str, ...]:
    """Regions of Google Cloud that a ladder tries, in order."""
    return tuple(dict.fromkeys(region_of(zone) for rung in ladder if rung.lane == GCP for zone in rung.zones))


_ORDER = {Admits.YES: 0, Admits.UNKNOWN: 1, Admits.NO: 2}


def _claims(machine: MachineType, model: ProvisioningModel, bench: Bench, disk_gib: float | None) -> tuple[_Claim, ...]:
    """What a machine takes. Preemptible pools count when the project has them, else the standard ones."""
    spot = model is not ProvisioningModel.STANDARD
    gpu = (machine.gpu_quota_preemptible, machine.gpu_quota_standard) if spot else (machine.gpu_quota_standard,)
    claims = [
        _Claim(_known(*gpu), machine.gpus),
        _Claim(_known(PREEMPTIBLE_CPUS if spot else None, machine.vcpu_quota), machine.vcpus),
        _Claim(_known(PREEMPTIBLE_LOCAL_SSD if spot else None, machine.local_ssd_quota), machine.local_ssd_gib),
        _Claim((DISK,), disk_gib or bench.disk_gib or bench.policy.boot_disk_gib),
        _Claim(_known(machine.global_quota), machine.gpus, everywhere=True),
    ]
    if bench.external_address:
        claims.append(_Claim((ADDRESSES,), 1))
    return tuple(claim for claim in claims if claim.metrics and claim.needed > 0)


def _known(*metrics: str | None) -> tuple[str, ...]:
    return tuple(metric for metric in metrics if metric)


def _listed(snapshot: QuotaSnapshot, claim: _Claim, region: str) -> Mapping[str, QuotaMetric]:
    """The metrics that may count a claim, by name; none when the region wasn't asked or answered without quotas."""
    metrics = snapshot.global_metrics
    if not claim.everywhere:
        metrics = next((found.metrics for found in snapshot.regions if found.region == region), None)
    return {metric.metric: metric for metric in metrics or () if metric.metric in claim.metrics}


def _claim_answer(claim: _Claim, listed: Mapping[str, QuotaMetric], region: str, taken: Taken) -> _Answer:
    metric = _counting(claim.metrics, listed)
    found = listed.get(metric)
    place = "" if claim.everywhere else region
    if found is None or not isfinite(found.usage) or isnan(found.limit):
        unknown = QuotaBinding(metric=metric, limit=None, usage=None, needed=claim.needed, region=place)
        return _Answer(Admits.UNKNOWN, unknown)
    usage = found.usage + taken.get((place, metric), 0.0)
    binding = QuotaBinding(metric=metric, limit=found.limit, usage=usage, needed=claim.needed, region=place)
    return _Answer(Admits.YES if _headroom(found, usage) >= claim.needed else Admits.NO, binding)


def _counting(metrics: tuple[str, ...], listed: Mapping[str, QuotaMetric]) -> str:
    """The metric that counts a claim.

    A preemptible pool of 0 was never granted: the standard one counts. CPU and local SSD pools that are not even
    listed were never granted either; a GPU pool that isn't listed stays unknown.
    """
    first, rest = metrics[0], metrics[1:]
    if not rest:
        return first
    found = listed.get(first)
    if found is None:
        return rest[0] if first in (PREEMPTIBLE_CPUS, PREEMPTIBLE_LOCAL_SSD) else first
    return first if found.limit != 0 else rest[0]


def _headroom(metric: QuotaMetric, usage: float) -> float:
    return inf if metric.limit >= UNLIMITED or metric.limit < 0 else metric.limit - usage


def _least(answers: list[_Answer]) -> _Answer:
    """No before unknown before yes; among equals the one with the least room."""

    def rank(answer: _Answer) -> tuple[int, float]:
        binding = answer.binding
        if binding.limit is None or binding.usage is None:
            return -_ORDER[answer.admits], 0.0
        unlimited = binding.limit >= UNLIMITED or binding.limit < 0
        return -_ORDER[answer.admits], inf if unlimited else (binding.limit - binding.usage) / binding.needed

    return min(answers, key=rank)


def _taken(pending: Iterable[Rung], snapshot: QuotaSnapshot, bench: Bench) -> dict[tuple[str, str], float]:
    """What rungs that are asked for will take, in each region that may give them."""
    total: dict[tuple[str, str], float] = {}
    for rung in pending:
        machine = bench.catalog.machine_types.get(rung.machine_type)
        if rung.lane != GCP or machine is None:
            continue
        for claim in _claims(machine, rung.provisioning_model, bench, None):
            for region in ("",) if claim.everywhere else regions_of((rung,)):
                key = (region, _counting(claim.metrics, _listed(snapshot, claim, region)))
                total[key] = total.get(key, 0.0) + claim.needed
    return total
