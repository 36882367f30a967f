"""Repeats, random walks and restarts: what must hold whatever happens in whatever order."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fakes.simworld import Cloud
from widelane.simcloud import actions
from widelane.simcloud.lifecycle import advance
from widelane.simcloud.refusals import Refused
from widelane.simcloud.state import State

SCENARIO = """
stock:
  - {zone: us-central1-a, machine_type: [a2-ultragpu-4g, a2-ultragpu-2g], count: 2, then: pending}
quotas: {us-central1: {PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 10}}
preempt: [{machine_type: a2-ultragpu-2g, after_seconds: 40}]
"""


def test_the_same_request_id_gives_the_same_operation_and_one_instance(cloud):
    here = cloud("stock: [{count: 9}]")
    identity = str(uuid.uuid4())
    first = here.insert("vm", request_id=identity)
    assert here.insert("vm", request_id=identity).name == first.name
    here.pass_time(5)
    assert here.insert("vm", request_id=identity).name == first.name
    assert len(here.state.instances) == 1


def test_a_failed_operation_is_remembered_too(cloud):
    here = cloud("{}")
    identity = str(uuid.uuid4())
    first = here.insert("vm", request_id=identity)
    here.pass_time(2)
    assert here.insert("vm", request_id=identity).name == first.name
    assert here.insert("vm", request_id=str(uuid.uuid4())).name != first.name


def test_the_same_name_without_the_same_request_id_is_a_conflict(cloud):
    here = cloud("stock: [{count: 9}]")
    here.insert("vm", request_id=str(uuid.uuid4()))
    with pytest.raises(Refused, match="already exists") as refused:
        here.insert("vm", request_id=str(uuid.uuid4()))
    assert refused.value.status == 409


@pytest.mark.parametrize("bad", ["x", "00000000-0000-0000-0000-000000000000"])
def test_a_request_id_must_be_a_uuid(cloud, bad):
    with pytest.raises(Refused, match="UUID"):
        cloud("{}").insert("vm", request_id=bad)


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("insert"),
            st.sampled_from(["a2-ultragpu-4g", "a2-ultragpu-2g"]),
            st.sampled_from(["SPOT", "FLEX_START", "STANDARD"]),
            st.sampled_from([0, 90]),
        ),
        st.tuples(st.just("delete"), st.integers(0, 5)),
        st.tuples(st.just("stop"), st.integers(0, 5)),
        st.tuples(st.just("pass"), st.sampled_from([1, 3, 30, 200])),
        st.tuples(st.just("reopen")),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_stock_and_quota_are_never_overdrawn_and_everything_settles(tmp_path_factory, steps):
    here = Cloud(SCENARIO, tmp_path_factory.mktemp("walk"))
    for number, step in enumerate(steps):
        _take(here, number, step)
        _check(here)
    here.pass_time(8000, step=100)
    _check(here)
    assert not [each for each in here.state.operations.values() if not each.done]
    assert all(each.status == "TERMINATED" for each in here.state.instances.values())
    assert not here.machines.running
    assert here.machines.ports == set()
    here.state.close()


def _take(here: Cloud, number: int, step: tuple) -> None:
    names = sorted(each.name for each in here.state.instances.values())
    if step[0] == "insert":
        wait = step[3] if step[2] == "FLEX_START" else 0
        here.insert(f"vm-{number}", step[1], step[2], wait=wait)
    elif step[0] == "pass":
        here.pass_time(step[1])
    elif step[0] == "reopen":
        _reopen(here)
    elif names:
        instance = here.at(names[step[1] % len(names)])
        if step[0] == "delete":
            actions.delete(here.world, instance, "")
        elif instance.status == "RUNNING":
            actions.stop(here.world, instance, "")
        advance(here.world)


def _reopen(here: Cloud) -> None:
    """Read everything back from the file, as a new server does."""
    path = Path(here.state._db.execute("PRAGMA database_list").fetchone()[2])
    before = (here.state.instances, here.state.operations, here.state.requests, here.state.stock, here.state.counters)
    here.state.close()
    again = State(path)
    assert (again.instances, again.operations, again.requests, again.stock, again.counters) == before
    here.state = again
    object.__setattr__(here.world, "state", again)


def _check(here: Cloud) -> None:
    held: dict[str, int] = {}
    for each in here.state.instances.values():
        if each.granted:
            held[str(each.combination)] = held.get(str(each.combination), 0) + 1
        assert each.granted or each.status != "RUNNING"
    assert all(count <= 2 for count in held.values())
    assert all(
        here.world.scenario.rule_for(each.combination).count + change >= 0
        for each in here.state.instances.values()
        for change in [here.state.stock.get(str(each.combination), 0)]
    )
    usage = here.world.region_usage("us-central1")
    assert usage.get("PREEMPTIBLE_NVIDIA_A100_80GB_GPUS", 0.0) <= 10.0
    running = [each for each in here.state.instances.values() if each.status == "RUNNING"]
    assert len(here.machines.running) >= len(running)
