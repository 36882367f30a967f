"""How instances end: deletes, stops, run limits, preemption, and VMs that die by themselves."""

from __future__ import annotations

import pytest

from widelane.simcloud import actions
from widelane.simcloud.lifecycle import advance, busy, retire
from widelane.simcloud.refusals import Refused

STOCK = "stock: [{count: 2}]"


def kinds(here) -> list[str]:
    return [operation.kind for operation in here.state.operations.values()]


@pytest.fixture
def running(cloud):
    """`running(scenario, **insert)`: a cloud with one running VM, `vm`."""

    def build(scenario=STOCK, **insert):
        here = cloud(scenario)
        here.insert("vm", **insert)
        here.pass_time(5)
        assert here.status("vm") == "RUNNING"
        return here

    return build


def test_a_delete_is_done_when_nothing_of_the_vm_is_left(running):
    here = running()
    here.machines.stubborn = 3
    operation = here.delete("vm")
    here.pass_time(2)
    assert here.status("vm") == "STOPPING"
    assert not here.state.operations[operation.name].done
    here.pass_time(5)
    assert here.status("vm") == ""
    assert here.codes(operation) == []
    assert not here.machines.running
    assert not here.machines.ports
    assert here.machines.discarded == ["vm"]


def test_two_deletes_of_one_instance_both_end_well(running):
    here = running()
    both = [here.delete("vm"), here.delete("vm")]
    here.pass_time(3)
    assert [here.codes(each) for each in both] == [[], []]


def test_a_delete_during_boot_cancels_the_insert(cloud):
    here = cloud(STOCK)
    insert = here.insert("vm")
    delete = here.delete("vm")
    here.pass_time(6)
    assert here.status("vm") == ""
    assert here.codes(insert) == ["OPERATION_CANCELED_BY_USER"]
    assert here.codes(delete) == []
    assert not here.machines.running


def test_a_stopped_instance_keeps_its_name_and_gives_back_what_it_held(running):
    here = running("{stock: [{count: 1}], global_quotas: {GPUS_ALL_REGIONS: 4}}")
    actions.stop(here.world, here.at("vm"), "")
    here.pass_time(2)
    assert here.status("vm") == "TERMINATED"
    assert not here.machines.running
    assert here.world.global_usage() == {}
    here.insert("next")
    here.pass_time(5)
    assert here.status("next") == "RUNNING"
    with pytest.raises(Refused, match="already exists"):
        here.insert("vm")
    here.delete("vm")
    here.pass_time(2)
    assert here.status("vm") == ""


@pytest.mark.parametrize(("action", "left"), [("DELETE", ""), ("STOP", "TERMINATED")])
def test_the_run_limit_ends_a_vm(running, action, left):
    here = running(limit=600, action=action, model="FLEX_START")
    here.pass_time(599)
    assert here.status("vm") == "RUNNING"
    here.pass_time(2)
    assert here.status("vm") == left
    assert not here.machines.running
    assert kinds(here)[-1] == ("delete" if action == "DELETE" else "stop")


@pytest.mark.parametrize(("action", "left"), [("DELETE", ""), ("STOP", "TERMINATED")])
def test_a_preempted_vm_gets_notice_then_dies(running, action, left):
    here = running("{stock: [{count: 1}], preempt: [{machine_type: a2-ultragpu-4g, after_seconds: 60}]}", action=action)
    here.pass_time(60)
    assert here.at("vm").preempted
    assert here.machines.running
    here.pass_time(31)
    assert here.status("vm") == left
    assert not here.machines.running
    assert kinds(here)[-1] == "compute.instances.preempted"


def test_a_preempted_machine_goes_to_someone_else(running):
    here = running("{stock: [{count: 1}]}")
    actions.preempt(here.world, here.at("vm"))
    here.pass_time(32)
    operation = here.insert("next")
    here.pass_time(2)
    assert here.codes(operation) == ["ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"]


def test_only_as_many_vms_are_preempted_as_the_rule_says(cloud):
    here = cloud("{stock: [{count: 9}], preempt: [{machine_type: '*', after_seconds: 10, times: 1}]}")
    here.insert("first")
    here.pass_time(1)
    here.insert("second")
    here.insert("standard", model="STANDARD")
    here.pass_time(60)
    assert [here.status(name) for name in ("first", "second", "standard")] == ["", "RUNNING", "RUNNING"]


@pytest.mark.parametrize("model", ["FLEX_START", "STANDARD"])
def test_only_spot_vms_can_be_preempted(running, model):
    here = running(model=model)
    with pytest.raises(Refused, match="running SPOT"):
        actions.preempt(here.world, here.at("vm"))


def test_a_vm_that_leaves_by_itself_is_terminated(running):
    here = running()
    here.machines.running.clear()
    here.pass_time(2)
    assert here.status("vm") == "TERMINATED"
    assert kinds(here)[-1] == "compute.instances.guestTerminate"


def test_a_vm_that_can_not_be_started_is_a_host_error(cloud):
    here = cloud(STOCK)
    here.machines.broken.add("vm")
    here.insert("vm")
    here.pass_time(6)
    assert here.status("vm") == "TERMINATED"
    assert kinds(here)[-1] == "compute.instances.hostError"


def test_the_cloud_is_busy_as_long_as_anything_lives(running):
    here = running()
    here.delete("vm")
    assert busy(here.world)
    here.pass_time(2)
    assert not busy(here.world)


def test_retiring_ends_every_vm_and_request(cloud):
    here = cloud("{stock: [{count: 1, then: pending}]}")
    here.insert("runs")
    here.pass_time(5)
    here.insert("boots", model="STANDARD")
    here.insert("waits", wait=600, model="FLEX_START", machine_type="a2-ultragpu-8g")
    here.insert("queues", wait=600, model="FLEX_START", machine_type="a2-ultragpu-8g")
    while not retire(here.world):
        advance(here.world)
    assert not here.machines.running
    assert not busy(here.world)
    assert here.status("runs") == "TERMINATED"
    assert [here.status(name) for name in ("boots", "waits", "queues")] == ["", "", ""]
