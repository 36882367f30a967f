"""The machines that would be tried, in order: lane, then width, then provisioning model, then accelerator."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import floor, inf

from widelane.facts import Policy
from widelane.models.catalog import Intent, MachineType, Offer
from widelane.models.plan import Phase, ProvisioningModel
from widelane.models.quota import Admits
from widelane.models.verdict import Rung
from widelane.router.admission import admit_rung
from widelane.router.bench import GCP, LOCAL, RUNPOD, Bench

ANY_MACHINE = "any"
"""Machine type of a rung whose lane picks the machine itself."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a machine must hold and where it may be: the part of a phase that picks machines. Hashable, for memory."""

    intent: Intent = field(compare=False)
    intent_name: str
    gpu_mem_gib: float
    ram_gib: float
    disk_gib: float
    lane: str | None
    model: ProvisioningModel | None
    zone: str | None


def need_of(phase: Phase, intent: Intent) -> Need:
    """The need of a phase; declared GPU memory replaces the intent's."""
    needs, pin = phase.needs, phase.pin
    declared = needs.gpu_mem_gib
    return Need(
        intent=intent,
        intent_name=intent.name,
        gpu_mem_gib=intent.gpu_mem_gib if declared is None else declared,
        ram_gib=needs.ram_gib or 0.0,
        disk_gib=needs.disk_gib or 0.0,
        lane=pin.lane if pin is not None else None,
        model=pin.provisioning_model if pin is not None else None,
        zone=pin.zone if pin is not None else None,
    )


def legal_widths(bench: Bench, intent: Intent) -> tuple[int, ...]:
    """The widths that machines of this intent come in, narrowest first; (0,) for CPU work."""
    if intent.base_gpus == 0:
        return (0,)
    key = ("legal", intent.name)
    found = bench.notes.get(key)
    if found is None:
        widths = [w for w in bench.policy.widths if w >= intent.floor and _is_legal(bench, intent, w)]
        found = tuple(sorted({*widths, intent.base_gpus}))
        bench.notes[key] = found
    return found


@dataclass(frozen=True, slots=True)
class Survey:
    """What the lanes can do for a need.

    `possible` widths may be asked for: there is a machine, or a lane that starts at the widest it holds. `admitted`
    are those that a machine has and no quota denies.
    """

    lanes: tuple[str, ...]
    possible: frozenset[int]
    admitted: frozenset[int]


def survey(bench: Bench, need: Need) -> Survey:
    """Lanes in the policy's order, and the legal widths that they have machines for."""
    key = ("survey", need)
    found = bench.notes.get(key)
    if found is None:
        bench.forget()
        lanes, widths = _lanes_in_order(bench, need), legal_widths(bench, need.intent)
        most = max((_most_gpus(bench, need, lane) for lane in lanes), default=-1.0)
        rungs = {width: _any_rungs(bench, need, width) if GCP in lanes else () for width in widths}
        found = Survey(
            lanes,
            frozenset(w for w in widths if most >= 0 or rungs[w]),
            frozenset(w for w in widths if w <= most or any(r.admits is not Admits.NO for r in rungs[w])),
        )
        bench.notes[key] = found
    return found


def _most_gpus(bench: Bench, need: Need, lane: str) -> float:
    """GPUs of the largest machine of a lane without tables: what is known of it, else any number; -1 for none."""
    if lane == GCP or (lane == RUNPOD and not pod_gpus(bench, need)):
        return -1
    room = bench.rooms.get(lane)
    return inf if room is None or room.gpus is None else room.gpus


def _lanes_in_order(bench: Bench, need: Need) -> tuple[str, ...]:
    order = {kind: place for place, kind in enumerate(bench.policy.lane_order)}
    lanes = tuple(lane for lane in bench.lanes if lane != LOCAL) or _shown(bench.policy)
    lanes = tuple(sorted((lane for lane in lanes if _kind(lane) in order), key=lambda lane: order[_kind(lane)]))
    if need.lane is not None:
        lanes = tuple(lane for lane in lanes if need.lane in (lane, _kind(lane)))
    if need.zone is not None or need.model not in (None, ProvisioningModel.STANDARD):
        lanes = tuple(lane for lane in lanes if lane == GCP)
    return lanes


def _shown(policy: Policy) -> tuple[str, ...]:
    """The lane of a ladder when none is configured: Google Cloud, or the first one where the policy leaves that out."""
    first = next((lane for lane in policy.lane_order if lane != LOCAL), GCP)
    return (GCP if GCP in policy.lane_order else first,)


def gcp_rungs(bench: Bench, need: Need, width: int, *, short: bool) -> tuple[Rung, ...]:
    """Rungs of Google Cloud at one width, with their quotas. A machine that can't hold the need is none."""
    key = ("rungs", need, width, short)
    found = bench.rungs.get(key)
    if found is None:
        models = bench.policy.models(short=short) if need.model is None else (need.model,)
        families = [_fitting(bench, need, machines) for machines in _machines(bench, need.intent, width)]
        found = tuple(
            rung
            for model in models
            for machine in families
            if machine is not None
            for rung in _rung(bench, need, machine, model)
        )
        bench.rungs[key] = found
    return found


@dataclass(frozen=True, slots=True)
class Walk:
    """The widths to walk on Google Cloud, widest first, and the one to ask other lanes for (None: none).

    `short` is the length of the work; `wide_short` that on machines of more than one GPU.
    """

    widths: tuple[int, ...]
    elsewhere: int | None
    short: bool
    wide_short: bool


def gpu_ladder(bench: Bench, need: Need, walk: Walk) -> tuple[Rung, ...]:
    """The whole ladder of GPU work: lanes in the policy's order, each from wide to narrow."""
    key = ("ladder", need, walk)
    found = bench.rungs.get(key)
    if found is None:
        rungs: list[Rung] = []
        for lane in survey(bench, need).lanes:
            if lane == GCP:
                for width in walk.widths:
                    rungs += gcp_rungs(bench, need, width, short=walk.wide_short if width > 1 else walk.short)
            elif walk.elsewhere is not None and lane == RUNPOD:
                rungs += _pod_rung(bench, need, walk.elsewhere)
            elif walk.elsewhere is not None:
                rungs.append(_other_rung(bench, need.intent, lane, walk.elsewhere))
        found = tuple(rungs)
        bench.rungs[key] = found
    return found


def _pod_rung(bench: Bench, need: Need, width: int) -> tuple[Rung, ...]:
    """The rung of RunPod; its places are GPU types, which have their own machines as zones have elsewhere."""
    gpus = pod_gpus(bench, need)
    return (_other_rung(bench, need.intent, RUNPOD, width).model_copy(update={"zones": gpus}),) if gpus else ()


def pod_gpus(bench: Bench, need: Need) -> tuple[str, ...]:
    """GPU types of RunPod that hold the need, in the order to try them."""
    share = bench.policy.gpu_mem_usable_share
    return tuple(pod.gpu for pod in bench.catalog.pod_gpus if floor(pod.memory_gib * share) >= need.gpu_mem_gib)


def _other_rung(bench: Bench, intent: Intent, lane: str, width: int) -> Rung:
    """The one rung of a lane whose machines are not in the tables."""
    last = _kind(lane) in bench.policy.last_resort_lanes and bench.policy.last_resort_width == "base"
    return Rung(
        lane=lane,
        machine_type=ANY_MACHINE,
        gpu="",
        width=min(width, max(intent.base_gpus, 1)) if last else width,
        provisioning_model=ProvisioningModel.STANDARD,
        zones=(),
        admits=Admits.UNKNOWN,
    )


def local_rung() -> Rung:
    """This machine, for work without GPUs."""
    return Rung(
        lane=LOCAL,
        machine_type=LOCAL,
        gpu="",
        width=0,
        provisioning_model=ProvisioningModel.STANDARD,
        zones=(),
        admits=Admits.YES,
    )


def usable_gib(machine: MachineType, policy: Policy) -> int:
    """GiB of one GPU's memory that work can use."""
    return floor(machine.gpu_mem_gib * policy.gpu_mem_usable_share)


def misfits(bench: Bench, need: Need, width: int) -> tuple[str, ...]:
    """Why there is no rung at a width, one reason a machine or lane; empty when there is one."""
    found = survey(bench, need)
    if not found.lanes:
        configured = ", ".join(bench.lanes) or ", ".join(_shown(bench.policy))
        why = "the pin leaves no lane" if _is_pinned(need) else "lane_order of the policy has no configured lane"
        return (f"{why} (configured: {configured})",)
    if width in found.possible:
        return ()
    pods: tuple[str, ...] = ()
    if RUNPOD in found.lanes and not pod_gpus(bench, need):
        pods = (f"RunPod rents no GPU with {need.gpu_mem_gib:g} GiB usable",)
    if GCP not in found.lanes:
        return pods
    machines = [machine for family in _machines(bench, need.intent, width) for machine in family]
    if not machines:
        return (f"Google Cloud has no machine for {need.intent.name}", *pods)
    return (*(f"{machine.name} {_misfit(bench, need, machine)}" for machine in machines), *pods)


def _is_pinned(need: Need) -> bool:
    return not (need.lane is None and need.model is None and need.zone is None)


def _kind(lane: str) -> str:
    return lane.partition(".")[0]


def _any_rungs(bench: Bench, need: Need, width: int) -> tuple[Rung, ...]:
    return gcp_rungs(bench, need, width, short=True) or gcp_rungs(bench, need, width, short=False)


def _is_legal(bench: Bench, intent: Intent, width: int) -> bool:
    families = intent.wide_families if width > intent.base_gpus else intent.base_families
    if not families:
        return width == intent.base_gpus
    return any(_ruled_in(bench, machine) for family in bench.machines(families, width) for machine in family)


def _ruled_in(bench: Bench, machine: MachineType) -> bool:
    rule = bench.policy.rung_rules.get(machine.family)
    return rule is None or machine.gpus in rule.widths


def _machines(bench: Bench, intent: Intent, width: int) -> tuple[tuple[MachineType, ...], ...]:
    families = intent.wide_families if width > intent.base_gpus else intent.base_families
    return tuple(
        tuple(machine for machine in family if _ruled_in(bench, machine)) for family in bench.machines(families, width)
    )


def _fitting(bench: Bench, need: Need, machines: tuple[MachineType, ...]) -> MachineType | None:
    """The smallest machine of a family that holds the need."""
    return next((machine for machine in machines if not _too_small(bench, need, machine)), None)


def _too_small(bench: Bench, need: Need, machine: MachineType) -> str:
    if machine.gpus and usable_gib(machine, bench.policy) < need.gpu_mem_gib:
        return f"has {usable_gib(machine, bench.policy)} GiB usable of {machine.gpu_mem_gib:g} GiB a GPU"
    if machine.memory_gib < need.ram_gib:
        return f"has {machine.memory_gib:g} GiB of memory"
    if need.disk_gib > bench.policy.max_boot_disk_gib:
        return f"takes a disk of at most {bench.policy.max_boot_disk_gib} GiB"
    return ""


def _misfit(bench: Bench, need: Need, machine: MachineType) -> str:
    small = _too_small(bench, need, machine)
    if small:
        return small
    if not _offers(bench, need, machine):
        return f"is not offered in {need.zone or ', '.join(bench.where)}"
    return f"is not bought as {need.model}" if need.model is not None else "can't be bought"


def _offers(bench: Bench, need: Need, machine: MachineType) -> tuple[Offer, ...]:
    offers = bench.catalog.offers.get(machine.name, ())
    if need.zone is not None:
        return tuple(offer for offer in offers if offer.zone == need.zone)
    return tuple(offer for offer in offers if offer.region in bench.where)


def _rung(bench: Bench, need: Need, machine: MachineType, model: ProvisioningModel) -> tuple[Rung, ...]:
    rule = bench.policy.rung_rules.get(machine.family)
    if model not in machine.provisioning_models or (rule is not None and model not in rule.provisioning_models):
        return ()
    zones = tuple(offer.zone for offer in _offers(bench, need, machine))
    if not zones:
        return ()
    rung = Rung(
        lane=GCP,
        machine_type=machine.name,
        gpu=machine.gpu,
        width=machine.gpus,
        provisioning_model=model,
        zones=zones,
        admits=Admits.UNKNOWN,
    )
    return (admit_rung(rung, bench.quotas, bench, disk_gib=need.disk_gib or None),)
