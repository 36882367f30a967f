"""Plans and benches in a few words, and ladders in the words of the design's table."""

from __future__ import annotations

from typing import Any

from widelane import facts
from widelane.models.plan import Accept, Axis, Marks, ParsedPlan, Phase, Plan
from widelane.models.quota import QuotaMetric, QuotaSnapshot, RegionQuota
from widelane.models.verdict import FindingCode, PhaseVerdict, Rung, Severity
from widelane.router import Bench, judge

_MODELS = {"SPOT": "spot", "FLEX_START": "flex", "STANDARD": "od"}


def make_bench(policy: dict[str, Any] | None = None, **fields: Any) -> Bench:
    """A bench on the shipped tables; `policy` are overrides."""
    catalog = facts.catalog()
    intents = fields.pop("intents", catalog.intents)
    return Bench(catalog=catalog, policy=facts.load_policy(policy), intents=intents, **fields)


def axes(**sizes: int) -> tuple[Axis, ...]:
    return tuple(Axis(name=name, size=size) for name, size in sizes.items())


def phase(**fields: Any) -> Phase:
    """The phase of the design's example, 20 units of 24 minutes, with other fields where given."""
    given: dict[str, Any] = {
        "name": "generate",
        "intent": "capture-7b",
        "axes": axes(model=2, draw_set=10),
        "gpu_hours": 8.0,
        "setup_minutes": 8.0,
        "command": "python gen.py --model {model} --draws {draw_set}",
        "outputs": ("out/{model}/{draw_set}.json",),
    }
    return Phase(**{**given, **fields})


def single(**fields: Any) -> Phase:
    """A phase in which nothing shards, as it says."""
    given: dict[str, Any] = {
        "name": "fit",
        "intent": "lora-7b",
        "axes": (),
        "why": "each step needs the one before",
        "gpu_hours": 3.0,
        "command": "python fit.py",
    }
    return Phase(**{**given, **fields})


def parsed(*phases: Phase, accept: tuple[Accept, ...] = (), marks: Marks | None = None) -> ParsedPlan:
    plan = Plan(widelane=1, task="1", phases=phases, accept=accept)
    return ParsedPlan(plan, marks or Marks({}), "<test>", None)


def judged(one: Phase, bench: Bench | None = None) -> PhaseVerdict:
    """The verdict on a plan of one phase."""
    return judge(parsed(one), bench or make_bench()).phases[0]


def errors(verdict: PhaseVerdict) -> list[str]:
    """Codes of the findings that make it REVISE."""
    return [f.code.value for f in verdict.findings if f.severity is Severity.ERROR and f.accepted is None]


def codes(verdict: PhaseVerdict) -> list[str]:
    """Codes of all findings."""
    return [finding.code.value for finding in verdict.findings]


def finding(verdict: PhaseVerdict, code: str) -> Any:
    """The one finding with that code."""
    found = [f for f in verdict.findings if f.code is FindingCode(code)]
    assert len(found) == 1, (code, verdict.findings)
    return found[0]


def words(ladder: tuple[Rung, ...]) -> list[str]:
    """Rungs as the design writes them: "flex a2-ultragpu-8g"; other lanes as "slurm 8"."""
    return [
        f"{_MODELS[rung.provisioning_model]} {rung.machine_type}" if rung.lane == "gcp" else f"{rung.lane} {rung.width}"
        for rung in ladder
    ]


def quotas(project: dict[str, tuple[float, float]] | None = None, **regions: Any) -> QuotaSnapshot:
    """A snapshot: metric -> (limit, usage); regions by name with _ for -, None for one that answered without quotas."""

    def metrics(listed: dict[str, tuple[float, float]]) -> tuple[QuotaMetric, ...]:
        return tuple(QuotaMetric(metric=name, limit=limit, usage=usage) for name, (limit, usage) in listed.items())

    return QuotaSnapshot(
        project="sim-project",
        taken_at="2026-12-01T00:00:00Z",
        regions=tuple(
            RegionQuota(region=name.replace("_", "-"), metrics=None if listed is None else metrics(listed))
            for name, listed in regions.items()
        ),
        global_metrics=None if project is None else metrics(project),
    )


AMPLE = dict.fromkeys(
    (
        "NVIDIA_A100_GPUS",
        "PREEMPTIBLE_NVIDIA_A100_GPUS",
        "NVIDIA_A100_80GB_GPUS",
        "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS",
        "PREEMPTIBLE_NVIDIA_H100_GPUS",
        "NVIDIA_L4_GPUS",
        "PREEMPTIBLE_NVIDIA_L4_GPUS",
        "A2_CPUS",
        "CPUS_PER_VM_FAMILY:A3",
        "CPUS_PER_VM_FAMILY:G2",
        "CPUS",
        "N2_CPUS",
        "LOCAL_SSD_TOTAL_GB",
        "SSD_TOTAL_GB",
        "IN_USE_ADDRESSES",
    ),
    (9.22337e18, 0.0),
)
"""Every metric that a rung of the shipped tables takes, without limit."""
PROJECT = {"GPUS_ALL_REGIONS": (9.22337e18, 0.0)}
