"""What the fact tables hold: machine types, where they are offered, intents, prices."""

from __future__ import annotations

from widelane.models.base import Frozen
from widelane.models.plan import ProvisioningModel


class MachineType(Frozen):
    """One machine type of a lane. Memory and disk in GiB. GPU-less types have `gpus` 0."""

    name: str
    family: str
    lane: str
    vcpus: int
    memory_gib: float
    gpu: str
    """Accelerator type as the lane names it, "" without."""
    gpus: int
    gpu_mem_gib: float
    """Per GPU."""
    local_ssd_gib: int
    gpu_share: float | None = None
    """Share of one GPU that a fractional type has (`gpus` is 0 then); such a type is never a rung."""
    provisioning_models: frozenset[ProvisioningModel]
    gpu_quota_standard: str | None
    gpu_quota_preemptible: str | None
    vcpu_quota: str | None
    local_ssd_quota: str | None
    global_quota: str | None
    source: str


class Offer(Frozen):
    """A machine type listed in a zone; listing proves no stock."""

    machine_type: str
    region: str
    zone: str
    source: str


class PodGpu(Frozen):
    """A GPU type of RunPod, which rents any number of them up to what its own catalogue says. Memory in GiB."""

    gpu: str
    memory_gib: float


class Price(Frozen):
    """US dollars an hour for the whole machine; only ever reported."""

    machine_type: str
    region: str
    on_demand: float | None
    spot: float | None
    dated: str


class Intent(Frozen):
    """A kind of work and the GPU it needs; every lane answers from the same need."""

    name: str
    base_gpus: int
    floor: int
    """Narrowest width it may degrade to when the plan gives no min_width."""
    group: int = 1
    """`gpus_per_shard` when the plan gives none: the GPUs that one unit of this work spans."""
    gpu_mem_gib: float
    """Least GPU memory that holds this work, per GPU."""
    base_families: tuple[str, ...]
    """Machine families (or single machine types) up to the base width, in order."""
    wide_families: tuple[str, ...]
    """Machine families (or single machine types) above the base width, in order."""
    note: str = ""
