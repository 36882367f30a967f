"""Answers about quotas that were saved, and the largest width of each pool."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.benches import AMPLE, PROJECT, make_bench, quotas
from widelane.errors import InputError
from widelane.router import quota_report, saved_quotas

REGION: dict[str, Any] = {
    "kind": "compute#region",
    "name": "us-central1",
    "description": "us-central1",
    "quotas": [
        {"limit": 16.0, "metric": "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS", "usage": 4.0},
        {"limit": 9.223372036854775807e18, "metric": "NVIDIA_A100_80GB_GPUS", "usage": 0.0},
        {"limit": 48, "metric": "A2_CPUS"},
    ],
    "status": "UP",
    "zones": ["https://www.googleapis.com/compute/v1/projects/lab/zones/us-central1-a"],
}
PROJECT_ANSWER: dict[str, Any] = {
    "kind": "compute#project",
    "name": "lab",
    "commonInstanceMetadata": {"kind": "compute#metadata"},
    "quotas": [{"limit": 8.0, "metric": "GPUS_ALL_REGIONS", "usage": 0.0}],
}


def test_gcloud_s_answers_are_one_snapshot() -> None:
    found = saved_quotas([("r.json", REGION), ("p.json", PROJECT_ANSWER)], "2026-11-30T00:00:00+00:00")
    assert (found.project, found.taken_at) == ("lab", "2026-11-30T00:00:00+00:00")
    assert [(m.metric, m.limit, m.usage) for m in found.regions[0].metrics or ()][2] == ("A2_CPUS", 48.0, 0.0)
    assert [m.limit for m in found.global_metrics or ()] == [8.0]
    report = quota_report(make_bench(quotas=found), intent="capture-7b", width=8)
    assert {row.admits.value for row in report.rungs if row.machine_type == "a2-ultragpu-8g"} == {"no"}


def test_a_list_of_regions_is_read_and_a_later_answer_replaces_an_earlier() -> None:
    other = {**REGION, "name": "us-east5", "quotas": []}
    late = {**REGION, "quotas": [{"metric": "A2_CPUS", "limit": 12.0, "usage": 0.0}]}
    found = saved_quotas([("list.json", [REGION, other]), ("late.json", late)], "t")
    assert [region.region for region in found.regions] == ["us-central1", "us-east5"]
    assert [metric.limit for metric in found.regions[0].metrics or ()] == [12.0]
    assert found.regions[1].metrics is None


def test_a_region_that_answered_with_a_warning_only_is_unknown() -> None:
    body = {"kind": "compute#region", "name": "us-central1", "quotaStatusWarning": {"code": "x"}}
    found = saved_quotas([("r.json", body)], "t")
    report = quota_report(make_bench(quotas=found), intent="eval", width=1)
    assert {row.admits.value for row in report.rungs} == {"unknown"}


def test_our_own_snapshot_is_read_back_whole() -> None:
    snapshot = quotas(PROJECT, us_central1=AMPLE, us_east5=None)
    assert saved_quotas([("own.json", snapshot.model_dump(mode="json"))], "now") == snapshot


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (7, "no answer about quotas"),
        (None, "no answer about quotas"),
        ({}, "no answer about quotas"),
        ([1], "no answer about quotas"),
        ({"kind": "compute#zone", "name": "us-central1-a"}, "no answer about quotas"),
        ({**REGION, "name": 3}, "no answer about quotas"),
        ({**REGION, "quotas": {"A2_CPUS": 3}}, "quotas is no list"),
        ({**REGION, "quotas": ["A2_CPUS"]}, "no metric with limit and usage"),
        ({**REGION, "quotas": [{"metric": "A2_CPUS", "limit": "48", "usage": 0}]}, "no metric with limit and usage"),
        ({**REGION, "quotas": [{"metric": "A2_CPUS", "usage": 0}]}, "no metric with limit and usage"),
        ({"taken_at": "t", "project": "p"}, "regions"),
    ],
)
def test_another_document_is_refused_with_its_file(document: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        saved_quotas([("some.json", document)], "t")
    assert caught.value.message.startswith("some.json")
    assert "gcloud compute regions describe" in caught.value.hint


def test_numbers_that_are_none_are_unknown() -> None:
    body = {**REGION, "quotas": [{"metric": "A2_CPUS", "limit": float("nan"), "usage": 0.0}]}
    report = quota_report(make_bench(quotas=saved_quotas([("r.json", body)], "t")), intent="capture-7b", width=8)
    assert {row.admits.value for row in report.rungs} == {"unknown"}


def test_the_largest_width_is_told_for_each_pool_and_region() -> None:
    scarce = {**AMPLE, "NVIDIA_A100_80GB_GPUS": (2.0, 0.0), "PREEMPTIBLE_NVIDIA_H100_GPUS": (0.0, 0.0)}
    scarce["PREEMPTIBLE_NVIDIA_A100_80GB_GPUS"] = (4.0, 0.0)
    bench = make_bench(regions=("us-central1", "us-east5"), quotas=quotas(PROJECT, us_central1=scarce))
    pools = quota_report(bench, intent="capture-7b", width=8).pools
    found = {(pool.region, pool.pool): (pool.largest_width, pool.largest_possible_width) for pool in pools}
    assert found == {
        # H100 has no metric of its own in the standard pool that stands in for a preemptible one of 0.
        ("us-central1", "preemptible"): (4, 8),
        ("us-central1", "standard"): (2, 2),
        ("us-east5", "preemptible"): (0, 8),
        ("us-east5", "standard"): (0, 8),
    }


@pytest.mark.parametrize("intent", ["capture-7b", "sweep-8g-h100"])
def test_flex_start_without_quota_is_refused_before_it_would_queue(intent: str) -> None:
    none = quotas({"GPUS_ALL_REGIONS": (0.0, 0.0)}, us_central1=AMPLE)
    report = quota_report(make_bench(quotas=none), intent=intent, width=8)
    flex = [row.admits.value for row in report.rungs if row.provisioning_model == "FLEX_START"]
    assert flex
    assert set(flex) == {"no"}
    assert "let it wait in vain" in report.note
    assert not quota_report(make_bench(quotas=quotas(PROJECT, us_central1=AMPLE)), intent="eval", width=1).note
