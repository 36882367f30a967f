"""The desk: what is read when, and what is remembered."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.fakes.moves import MovingRuns
from widelane import config
from widelane.config import Settings
from widelane.errors import ConfigError, InputError, LaneAuthError, PlanError
from widelane.models.quota import QuotaMetric, QuotaSnapshot, RegionQuota
from widelane.models.verdict import Verdict
from widelane.tools.desk import QUOTA_SECONDS, Desk
from widelane.tools.dispatch import DispatchInput, dispatch
from widelane.tools.given import PlanGiven
from widelane.tools.plan_width import PlanWidthInput, plan_width
from widelane.tools.quota_check import QuotaCheckInput, quota_check

PLAN = """\
widelane: 1
phases:
  - name: generate
    intent: capture-7b
    axes: {draw: 20}
    gpu_hours: 8
    setup_minutes: 8
    width: 8
    min_width: 1
    command: python gen.py {draw}
    outputs: ["out/{draw}.json"]
"""


class StillClock:
    """Stands until it is moved."""

    rate = 1.0
    seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 12, 1, tzinfo=UTC)

    def elapsed(self) -> float:
        return self.seconds


class Quotas:
    """Quotas of which every region has the same, and how often they were asked for."""

    def __init__(self, a100: float = 16) -> None:
        self.a100 = a100
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, settings: Settings, regions: tuple[str, ...]) -> QuotaSnapshot:
        self.asked.append(regions)
        metrics = tuple(
            QuotaMetric(metric=name, limit=self.a100, usage=0)
            for name in ("PREEMPTIBLE_NVIDIA_A100_80GB_GPUS", "NVIDIA_A100_80GB_GPUS")
        )
        return QuotaSnapshot(
            project="p",
            taken_at=f"t{len(self.asked)}",
            regions=tuple(RegionQuota(region=region, metrics=metrics) for region in regions),
            global_metrics=None,
        )


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def quotas() -> Quotas:
    return Quotas()


@pytest.fixture
def runs() -> MovingRuns:
    return MovingRuns()


@pytest.fixture
def desk(tmp_path: Path, clock: StillClock, quotas: Quotas, runs: MovingRuns) -> Desk:
    return Desk(config.load(tmp_path, os.environ), cwd=tmp_path, clock=clock, quotas=quotas, runs=lambda _: runs)


def test_a_path_starts_from_the_working_folder_and_a_home_is_expanded(desk: Desk, tmp_path: Path, own_world: Path):
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "a.yaml").write_text(PLAN)
    (own_world / "b.yaml").write_text(PLAN)
    for path in ("plans/a.yaml", str(tmp_path / "plans" / "a.yaml"), "~/b.yaml"):
        assert plan_width(PlanWidthInput(plan_path=path), desk).verdict is Verdict.PASS


@pytest.mark.parametrize("content", [b"\x00\x01\xff\xfe", b"", b"text without a plan"])
def test_a_file_that_holds_no_plan_is_refused_with_its_place(desk: Desk, tmp_path: Path, content: bytes):
    (tmp_path / "plan.yaml").write_bytes(content)
    with pytest.raises(PlanError, match=r"plan\.yaml:1:\d"):
        plan_width(PlanWidthInput(plan_path="plan.yaml"), desk)


def test_a_folder_is_no_plan(desk: Desk, tmp_path: Path):
    with pytest.raises(PlanError, match="folder"):
        plan_width(PlanWidthInput(plan_path="."), desk)


def test_a_file_that_changed_is_read_again(desk: Desk, tmp_path: Path):
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)
    before = plan_width(PlanWidthInput(plan_path="plan.yaml"), desk)
    file.write_text(PLAN.replace("gpu_hours: 8", "gpu_hours: 9"))
    assert plan_width(PlanWidthInput(plan_path="plan.yaml"), desk).plan_digest != before.plan_digest


def test_the_same_text_is_judged_once(desk: Desk):
    first, second = desk.judged(PlanGiven(plan=PLAN)), desk.judged(PlanGiven(plan=PLAN))
    assert first is second


def test_only_so_many_plans_are_remembered(desk: Desk):
    first = desk.judged(PlanGiven(plan=PLAN))
    for number in range(70):
        desk.judged(PlanGiven(plan=f"{PLAN}# {number}\n"))
    assert desk.judged(PlanGiven(plan=PLAN)) is not first


def test_without_quotas_every_rung_is_unknown_and_none_are_asked_for(desk: Desk, quotas: Quotas):
    verdict = plan_width(PlanWidthInput(plan=PLAN), desk)
    assert {rung.admits.value for rung in verdict.phases[0].ladder} == {"unknown"}
    assert quotas.asked == []


def test_what_quota_check_read_counts_for_a_while(desk: Desk, quotas: Quotas, clock: StillClock):
    quotas.a100 = 4
    report = quota_check(QuotaCheckInput(plan=PLAN), desk)
    assert quotas.asked == [("us-central1",)]
    assert {rung.width for rung in report.rungs if rung.admits == "no"} == {8}

    def admits(width: int) -> set[str]:
        ladder = plan_width(PlanWidthInput(plan=PLAN), desk).phases[0].ladder
        return {rung.admits.value for rung in ladder if rung.width == width and "ultragpu" in rung.machine_type}

    assert admits(8) == {"no"}
    clock.seconds = QUOTA_SECONDS + 1
    assert admits(8) == {"unknown"}


def test_quotas_do_not_change_the_digest_of_a_plan(desk: Desk):
    before = plan_width(PlanWidthInput(plan=PLAN), desk).plan_digest
    quota_check(QuotaCheckInput(plan=PLAN), desk)
    assert plan_width(PlanWidthInput(plan=PLAN), desk).plan_digest == before


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (QuotaCheckInput(), "neither a plan nor an intent"),
        (QuotaCheckInput(width=8), "neither a plan nor an intent"),
        (QuotaCheckInput(plan=PLAN, width=8), "together"),
        (QuotaCheckInput(width=3, intent="capture-7b"), "3 GPUs"),
        (QuotaCheckInput(width=8, intent="capture-8b"), "capture-8b"),
    ],
)
def test_a_quota_question_that_cannot_be_answered_asks_nobody(
    desk: Desk, quotas: Quotas, given: QuotaCheckInput, words: str
):
    with pytest.raises(InputError, match=words):
        quota_check(given, desk)
    assert quotas.asked == []


def test_without_a_project_quotas_are_refused_with_the_fix(tmp_path: Path):
    desk = Desk.open(tmp_path, os.environ)
    with pytest.raises(ConfigError, match=r"lanes\.gcp"):
        quota_check(QuotaCheckInput(width=8, intent="capture-7b"), desk)


def test_without_credentials_quotas_are_refused_with_the_command_to_type(tmp_path: Path):
    (tmp_path / "widelane.toml").write_text('[lanes.gcp]\nproject = "p"\n')
    with pytest.raises(LaneAuthError) as refused:
        quota_check(QuotaCheckInput(width=8, intent="capture-7b"), Desk.open(tmp_path, os.environ))
    assert refused.value.code == "login_needed"
    assert "gcloud auth application-default login" in refused.value.hint


def test_a_configuration_that_was_mended_is_read_without_a_restart(tmp_path: Path):
    file = tmp_path / "widelane.toml"
    file.write_text("[policy]\nwidth = 3\n")
    desk = Desk.open(tmp_path, os.environ)
    with pytest.raises(ConfigError, match="width"):
        plan_width(PlanWidthInput(plan=PLAN), desk)
    file.write_text("[policy]\nmin_efficiency = 0.6\n")
    assert desk.policy.min_efficiency == 0.6
    assert plan_width(PlanWidthInput(plan=PLAN), desk).verdict is Verdict.PASS


def test_own_intents_and_regions_count(tmp_path: Path):
    (tmp_path / "widelane.toml").write_text(
        '[lanes.gcp]\nproject = "p"\nregions = ["us-east1"]\n[intents.mine]\nbase_gpus = 1\ngpu_mem_gib = 20\n'
        'base = ["a2-highgpu"]\nwide = ["a2-ultragpu"]\n'
    )
    verdict = plan_width(
        PlanWidthInput(plan=PLAN.replace("capture-7b", "mine").replace("width: 8", "width: 1")),
        Desk.open(tmp_path, os.environ),
    )
    ladder = verdict.phases[0].ladder
    assert {rung.machine_type for rung in ladder} == {"a2-highgpu-1g"}
    assert {zone.rpartition("-")[0] for rung in ladder for zone in rung.zones} == {"us-east1"}


def test_a_digest_is_of_the_plan_and_the_policy(tmp_path: Path, runs: MovingRuns):
    plain = Desk.open(tmp_path, os.environ)
    digest = plan_width(PlanWidthInput(plan=PLAN), plain).plan_digest
    (tmp_path / "widelane.toml").write_text("[policy]\nidle_minutes = 20\n")
    changed = Desk(config.load(tmp_path, os.environ), cwd=tmp_path, runs=lambda _: runs)
    with pytest.raises(InputError) as refused:
        dispatch(DispatchInput(plan=PLAN, plan_digest=digest), changed)
    assert refused.value.code == "stale_plan"
    assert digest not in f"{refused.value.message}{refused.value.hint}"
    assert not runs.submitted


def test_a_digest_survives_comments_and_layout(desk: Desk, runs: MovingRuns):
    digest = plan_width(PlanWidthInput(plan=PLAN), desk).plan_digest
    commented = "# the same plan\n" + PLAN.replace("axes: {draw: 20}", "axes:\n      draw: 20")
    assert dispatch(DispatchInput(plan=commented, plan_digest=digest), desk).started
    assert runs.sims == [None]


def test_a_url_where_no_simulated_cloud_answers_is_said(tmp_path: Path):
    desk = Desk.open(tmp_path, os.environ, sim="http://127.0.0.1:9")
    assert plan_width(PlanWidthInput(plan=PLAN), desk).verdict is Verdict.PASS
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:9"):
        quota_check(QuotaCheckInput(plan=PLAN), desk)


def test_with_a_simulated_cloud_no_real_lane_is_planned_for(tmp_path: Path):
    (tmp_path / "widelane.toml").write_text('[lanes.slurm.here]\nhost = "login.cluster.example.org"\n')
    text = PlanWidthInput(plan=PLAN)
    real = plan_width(text, Desk.open(tmp_path, os.environ)).phases[0].ladder
    rehearsed = plan_width(text, Desk.open(tmp_path, os.environ, sim="scenario.yaml")).phases[0].ladder
    assert {rung.lane.partition(".")[0] for rung in real} == {"slurm"}
    assert {rung.lane for rung in rehearsed} == {"gcp"}


def test_one_read_of_quotas_serves_until_it_is_old_and_its_age_is_told(desk: Desk, quotas: Quotas, clock: StillClock):
    asked = QuotaCheckInput(width=8, intent="capture-7b")
    quota_check(asked, desk)
    clock.seconds = 60
    again = quota_check(asked, desk)
    assert (again.taken_at, len(quotas.asked)) == ("t1", 1)
    assert quota_check(asked.model_copy(update={"fresh": True}), desk).taken_at == "t2"
    clock.seconds = 120 + QUOTA_SECONDS
    assert quota_check(asked, desk).taken_at == "t3"


def test_a_saved_answer_needs_no_project_and_no_network(tmp_path: Path, quotas: Quotas):
    listed = [{"metric": "A2_CPUS", "limit": 48, "usage": 0}]
    (tmp_path / "region.json").write_text(json.dumps({"name": "us-central1", "quotas": listed}))
    os.utime(tmp_path / "region.json", (1.0, 1.0))
    desk = Desk(config.load(tmp_path, os.environ), cwd=tmp_path, quotas=quotas)
    report = quota_check(QuotaCheckInput(width=8, intent="capture-7b", from_files=("region.json",)), desk)
    assert (report.taken_at, quotas.asked) == ("1970-01-01T00:00:01+00:00", [])
    assert report.age_seconds is not None
    assert report.age_seconds > 1_000_000_000
    assert {row.admits.value for row in report.rungs if row.machine_type == "a2-ultragpu-8g"} == {"no"}
    # A saved answer says nothing of now: verdicts don't count it.
    assert {r.admits.value for r in plan_width(PlanWidthInput(plan=PLAN), desk).phases[0].ladder} == {"unknown"}


@pytest.mark.parametrize(("content", "words"), [(None, "can't be read"), ("{", "is not JSON"), ("[" * 99999, "JSON")])
def test_a_file_that_holds_no_answer_is_refused(desk: Desk, tmp_path: Path, content: str | None, words: str):
    if content is not None:
        (tmp_path / "q.json").write_text(content)
    with pytest.raises(InputError, match=words):
        quota_check(QuotaCheckInput(width=8, intent="eval", from_files=("q.json",)), desk)
