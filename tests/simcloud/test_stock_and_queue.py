"""Stock, quotas and the flex-start queue, on a clock that the test moves."""

from __future__ import annotations

import pytest

from tests.fakes.simworld import ZONE

ONE_FLEX = "stock: [{zone: us-central1-a, machine_type: a2-ultragpu-4g, model: FLEX_START, count: 1}]"
PENDING = """
stock:
  - {zone: us-central1-a, machine_type: a2-ultragpu-4g, model: FLEX_START, count: 1, then: pending}
"""
STOCKOUT = ["ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"]


def test_an_instance_runs_once_it_has_booted(cloud):
    here = cloud(ONE_FLEX)
    operation = here.insert("vm", model="FLEX_START")
    assert here.status("vm") == "PROVISIONING"
    here.pass_time(4)
    assert not here.state.operations[operation.name].done
    here.pass_time(1)
    assert here.status("vm") == "RUNNING"
    assert here.codes(operation) == []
    assert here.machines.running


def test_a_stock_out_comes_out_in_the_operation_and_leaves_no_instance(cloud):
    here = cloud(ONE_FLEX)
    here.insert("first", model="FLEX_START")
    second = here.insert("second", model="FLEX_START")
    assert here.status("second") == "PROVISIONING"
    here.pass_time(2)
    assert here.codes(second) == STOCKOUT
    assert here.state.operations[second.name].http_status == 503
    assert here.status("second") == ""


@pytest.mark.parametrize("model", ["SPOT", "STANDARD", "FLEX_START"])
def test_what_the_scenario_does_not_mention_is_out_of_stock(cloud, model):
    here = cloud("{}")
    operation = here.insert("vm", model=model)
    here.pass_time(2)
    assert here.codes(operation) == STOCKOUT


def test_a_stock_out_names_the_other_zones_that_have_stock(cloud):
    here = cloud("stock: [{zone: [us-central1-c, us-east4-c], machine_type: a2-ultragpu-4g, model: SPOT, count: 1}]")
    here.insert("taken", zone="us-east4-c")
    operation = here.insert("vm")
    here.pass_time(2)
    details = here.state.operations[operation.name].errors[0]["errorDetails"]
    assert details[2]["errorInfo"]["metadatas"]["zonesAvailable"] == "us-central1-c"
    assert "us-central1-c zone(s)" in details[1]["localizedMessage"]["message"]


def test_the_most_specific_rule_counts(cloud):
    here = cloud("""
stock:
  - {machine_type: a2-ultragpu-4g, model: SPOT, count: 0}
  - {count: 5}
  - {zone: us-central1-a, count: 0}
""")
    refused = here.insert("spot", zone="us-central1-c", model="SPOT")
    here.insert("flex", zone="us-central1-c", model="FLEX_START")
    also_refused = here.insert("elsewhere", model="FLEX_START")
    here.pass_time(5)
    assert here.codes(refused) == STOCKOUT
    assert here.codes(also_refused) == STOCKOUT
    assert here.status("flex", "us-central1-c") == "RUNNING"


def test_a_deleted_instance_gives_its_stock_back(cloud):
    here = cloud(ONE_FLEX)
    here.insert("first", model="FLEX_START")
    here.pass_time(5)
    here.delete("first")
    here.pass_time(2)
    here.insert("second", model="FLEX_START")
    here.pass_time(5)
    assert here.status("second") == "RUNNING"


def test_a_pending_request_runs_when_stock_frees(cloud):
    here = cloud(PENDING)
    here.insert("first", model="FLEX_START")
    here.pass_time(5)
    operation = here.insert("second", model="FLEX_START", wait=600)
    here.pass_time(100)
    assert here.status("second") == "PENDING"
    assert not here.state.operations[operation.name].done
    here.delete("first")
    here.pass_time(10)
    assert here.status("second") == "RUNNING"
    assert here.codes(operation) == []


def test_pending_requests_are_served_in_order(cloud):
    here = cloud(PENDING)
    here.insert("first", model="FLEX_START")
    here.pass_time(5)
    for name in ("b-second", "a-third"):
        here.insert(name, model="FLEX_START", wait=600)
        here.pass_time(1)
    here.delete("first")
    here.pass_time(10)
    assert (here.status("b-second"), here.status("a-third")) == ("RUNNING", "PENDING")


def test_a_pending_request_runs_when_its_machine_arrives(cloud):
    here = cloud("stock: [{count: 0, then: pending, arrives_after_seconds: 120}]")
    here.insert("vm", model="FLEX_START", wait=600)
    here.pass_time(119)
    assert here.status("vm") == "PENDING"
    here.pass_time(7)
    assert here.status("vm") == "RUNNING"


@pytest.mark.parametrize("step", [1.0, 5000.0])
def test_a_pending_request_that_expires_ends_with_an_error_and_no_instance(cloud, step):
    here = cloud("stock: [{count: 0, then: pending, arrives_after_seconds: 700}]")
    operation = here.insert("vm", model="FLEX_START", wait=600)
    here.pass_time(5000 if step > 1 else 601, step)
    assert here.status("vm") == ""
    assert here.codes(operation) == STOCKOUT
    assert here.state.operations[operation.name].ended == 600


def test_a_request_that_may_not_wait_is_refused_at_once(cloud):
    here = cloud("stock: [{count: 0, then: pending}]")
    operation = here.insert("vm", model="FLEX_START")
    here.pass_time(2)
    assert here.codes(operation) == STOCKOUT


def test_deleting_a_pending_instance_cancels_its_request(cloud):
    here = cloud("stock: [{count: 0, then: pending}]")
    insert = here.insert("vm", model="FLEX_START", wait=600)
    delete = here.delete("vm")
    here.pass_time(2)
    assert here.status("vm") == ""
    assert here.codes(delete) == []
    assert here.codes(insert) == ["OPERATION_CANCELED_BY_USER"]


def test_a_quota_refuses_in_the_operation_and_names_itself(cloud):
    here = cloud("""
stock: [{count: 9}]
quotas: {us-central1: {PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 6}}
""")
    here.insert("first")
    second = here.insert("second")
    here.pass_time(5)
    assert here.status("first") == "RUNNING"
    assert here.codes(second) == ["QUOTA_EXCEEDED"]
    error = here.state.operations[second.name].errors[0]
    assert error["message"] == "Quota 'PREEMPTIBLE_NVIDIA_A100_80GB_GPUS' exceeded.  Limit: 6.0 in region us-central1."
    assert here.state.operations[second.name].http_status == 403


def test_the_project_wide_gpu_quota_counts_every_region(cloud):
    here = cloud("{stock: [{count: 9}], global_quotas: {GPUS_ALL_REGIONS: 6}}")
    here.insert("first", zone="us-east4-c")
    second = here.insert("second")
    here.pass_time(5)
    assert here.state.operations[second.name].errors[0]["message"] == (
        "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 6.0 globally."
    )


@pytest.mark.parametrize(
    ("limits", "model", "runs"),
    [
        ("{NVIDIA_A100_80GB_GPUS: 4}", "SPOT", True),
        ("{PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 0, NVIDIA_A100_80GB_GPUS: 4}", "SPOT", False),
        ("{PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 0, NVIDIA_A100_80GB_GPUS: 4}", "FLEX_START", True),
        ("{PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 4, NVIDIA_A100_80GB_GPUS: 0}", "STANDARD", False),
        ("{A2_CPUS: 47}", "SPOT", False),
        ("{A2_CPUS: 47, PREEMPTIBLE_CPUS: 48}", "SPOT", True),
        ("{A2_CPUS: 47, PREEMPTIBLE_CPUS: 0}", "SPOT", False),
        ("{DISKS_TOTAL_GB: 99}", "SPOT", False),
        ("{INSTANCES: 1}", "SPOT", True),
    ],
)
def test_each_model_takes_from_its_own_pool(cloud, limits, model, runs):
    here = cloud(f"{{stock: [{{count: 9}}], quotas: {{us-central1: {limits}}}}}")
    here.insert("vm", model=model)
    here.pass_time(5)
    assert (here.status("vm") == "RUNNING") is runs


def test_flex_start_with_too_little_quota_waits_as_for_stock(cloud):
    here = cloud("{stock: [{count: 9}], quotas: {us-central1: {PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 4}}}")
    here.insert("first")
    here.pass_time(5)
    here.insert("second", model="FLEX_START", wait=600)
    here.pass_time(60)
    assert here.status("second") == "PENDING"
    here.delete("first")
    here.pass_time(10)
    assert here.status("second") == "RUNNING"


def test_quota_usage_follows_live_instances(cloud):
    here = cloud("{stock: [{count: 9}], quotas: {us-central1: {PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 16}}}")
    metric = "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS"
    here.insert("first")
    here.pass_time(5)
    assert here.world.region_usage("us-central1") == {metric: 4.0}
    here.delete("first")
    here.pass_time(2)
    assert here.world.region_usage("us-central1").get(metric, 0.0) == 0.0


def test_the_scenario_says_how_many_gpus_a_vm_shows(cloud):
    here = cloud("{stock: [{count: 9}], visible_gpus: {a2-ultragpu-4g: 3}}")
    here.insert("short")
    here.insert("whole", machine_type="a2-ultragpu-2g")
    here.pass_time(5)
    assert here.machines.shown == {"short": 3, "whole": 2}
    assert here.at("short", ZONE).machine_type == "a2-ultragpu-4g"
