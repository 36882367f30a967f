from __future__ import annotations

import pytest

from widelane.models.attempt import AttemptRow, Outcome
from widelane.models.dispatch import DispatchState, GpuProgress, PhaseStatus, RunStatus, UnitCounts
from widelane.models.plan import ProvisioningModel
from widelane.models.quota import Admits, QuotaBinding
from widelane.models.verdict import (
    Finding,
    FindingCode,
    Length,
    PhaseVerdict,
    PlanVerdict,
    Rung,
    Severity,
    Verdict,
    WidthRow,
)
from widelane.reports.paper import Paper

FLEX = ProvisioningModel.FLEX_START
STOCKOUT = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"


@pytest.fixture
def paper() -> Paper:
    return Paper(columns=100)


@pytest.fixture
def rungs() -> tuple[Rung, ...]:
    denied = QuotaBinding(metric="PREEMPTIBLE_NVIDIA_A100_80GB_GPUS", limit=4, usage=0, needed=8)
    return (
        Rung(
            lane="gcp",
            machine_type="a2-ultragpu-8g",
            gpu="nvidia-a100-80gb",
            width=8,
            provisioning_model=FLEX,
            zones=("us-central1-a", "us-central1-c", "europe-west4-a"),
            admits=Admits.NO,
            binding_quota=denied,
        ),
        Rung(
            lane="gcp",
            machine_type="a2-ultragpu-4g",
            gpu="nvidia-a100-80gb",
            width=4,
            provisioning_model=FLEX,
            zones=("us-central1-a",),
            admits=Admits.UNKNOWN,
        ),
    )


@pytest.fixture
def narrow() -> Finding:
    return Finding(
        code=FindingCode.NEEDLESSLY_NARROW,
        severity=Severity.ERROR,
        phase="capture",
        line=7,
        column=5,
        message="width 8 takes 1.33 h, width 1 takes 8.13 h",
        fix="width: 8",
    )


@pytest.fixture
def verdict(rungs: tuple[Rung, ...], narrow: Finding) -> PlanVerdict:
    capture = PhaseVerdict(
        name="capture",
        verdict=Verdict.REVISE,
        requested_width=1,
        recommended_width=8,
        min_width=1,
        binding="work",
        units=20,
        gpus_per_shard=1,
        widths=(
            WidthRow(width=1, wall_hours=8.1333, efficiency=0.98, stranded_gpus=0, shards=1, waves=20),
            WidthRow(width=8, wall_hours=1.3333, efficiency=0.75, stranded_gpus=0, shards=8, waves=3),
        ),
        length=Length.LONG,
        length_reason="8 GPU-hours are more than 2",
        findings=(narrow,),
        ladder=rungs,
    )
    judge = PhaseVerdict(
        name="judge",
        verdict=Verdict.PASS,
        requested_width=0,
        recommended_width=0,
        min_width=0,
        binding="",
        units=1,
        gpus_per_shard=0,
        widths=(),
        length=Length.SHORT,
        length_reason="",
        findings=(),
        ladder=(),
    )
    return PlanVerdict(verdict=Verdict.REVISE, plan_digest="1a2b3c", policy_version="p1", phases=(capture, judge))


def attempt(machine_type: str, width: int, zone: str | None, outcome: Outcome | None, code: str) -> AttemptRow:
    return AttemptRow(
        attempt_id=f"{machine_type}-{zone}",
        lane="gcp",
        machine_type=machine_type,
        width=width,
        provisioning_model=FLEX,
        zone=zone,
        outcome=outcome,
        code=code,
    )


@pytest.fixture
def run() -> RunStatus:
    capture = PhaseStatus(
        name="capture",
        dispatch_id="d-1",
        state=DispatchState.RUNNING,
        requested_width=8,
        realized_width=4,
        lane="gcp",
        machine_type="a2-ultragpu-4g",
        provisioning_model="FLEX_START",
        zone="us-central1-a",
        attempts=(
            attempt("a2-ultragpu-8g", 8, "us-central1-a", Outcome.CAPACITY, STOCKOUT),
            attempt("a3-highgpu-8g", 8, None, Outcome.SKIPPED, "quota"),
            attempt("a2-ultragpu-4g", 4, "us-central1-a", Outcome.GRANTED, ""),
        ),
        units=UnitCounts(total=20, succeeded=9, failed=1, running=4),
        gpus=(GpuProgress(gpu="0", done=5, running="11"), GpuProgress(gpu="1", done=5)),
    )
    report = PhaseStatus(name="report", dispatch_id="d-2", state=DispatchState.QUEUED, requested_width=0)
    return RunStatus(
        run_id="r-77",
        state=DispatchState.RUNNING,
        task="1121",
        plan_digest="1a2b3c",
        started_at="2026-03-01T12:00:00Z",
        phases=(capture, report),
        last_seq=12,
    )
