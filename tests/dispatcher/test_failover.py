"""The lane of last resort: reached over recorded exhaustion, by a pin, or once by failed work, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.lane import Host, ScriptedLane
from tests.fakes.runs import DISPATCH, LADDER, Bed, make_phase
from tests.fakes.walks import make_rung
from widelane.errors import LaneAuthError
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.dispatch import DispatchState
from widelane.models.plan import Pin

A = "us-central1-a"
WIDE_FLEX = ("a2-ultragpu-8g", "FLEX_START", A)
POD = make_rung("any", 8, "STANDARD", lane="runpod", gpu="", zones=("A100",))
POD_PLACE = ("any", "STANDARD", "A100")


def make_bed(folder: Path, *, ladder: Any = (*LADDER, POD), **changes: Any) -> tuple[Bed, ScriptedLane]:
    policy = changes.pop("policy", {})
    pin = changes.pop("pin", None)
    settings = {"home": str(folder), "policy": policy}
    bed = Bed(folder, [make_phase(pin=pin)], ladder, settings=settings, **changes)
    pods = bed.add_lane("runpod")
    pods.answers[POD_PLACE] = ["run"] * 9
    return bed, pods


@pytest.fixture
def beds(tmp_path: Path) -> Iterator[Any]:
    made: list[Bed] = []

    def make(**changes: Any) -> tuple[Bed, ScriptedLane]:
        bed, pods = make_bed(tmp_path / str(len(made)), **changes)
        made.append(bed)
        return bed, pods

    yield make
    for bed in made:
        assert bed.lane.machines_ == {}
        assert all(lane.machines_ == {} for lane in bed.lanes.values())
        bed.close()


def test_the_paid_lane_is_reached_when_every_earlier_rung_was_out_of_stock_and_the_launch_carries_the_evidence(
    beds: Any,
) -> None:
    bed, pods = beds()
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    selected = phase.attempts[-1].selected
    assert selected is not None
    assert selected.lane == "runpod"
    assert selected.evidence == tuple(a.intended.attempt_id for a in phase.attempts[:-1])
    assert len(pods.sent) == 1


@pytest.mark.parametrize("outcome", [Outcome.PERMISSION, Outcome.CONFIG, Outcome.TRANSIENT, Outcome.CONFLICT])
@pytest.mark.parametrize("scope", [Scope.ZONE, Scope.RUNG, Scope.REGION, Scope.PROJECT])
def test_a_refusal_that_is_not_about_capacity_stops_before_the_paid_lane(
    beds: Any, outcome: Outcome, scope: Scope
) -> None:
    bed, pods = beds()
    bed.lane.answers[WIDE_FLEX] = [Failure(outcome=outcome, scope=scope, code="no", message="no")] * 9
    phase = bed.work()
    assert phase.state is DispatchState.STOPPED
    assert pods.sent == []


def test_a_login_that_is_needed_stops_before_the_paid_lane(beds: Any) -> None:
    bed, pods = beds()
    bed.lane.trouble = [LaneAuthError("gcp", "expired", hint="gcloud auth login")]
    phase = bed.work()
    assert phase.ended is not None
    assert (phase.ended.reason, phase.ended.hint) == ("login_needed", "gcloud auth login")
    assert pods.sent == []


def test_walks_that_are_used_up_do_not_lead_to_the_paid_lane(beds: Any) -> None:
    bed, pods = beds(policy={"walks_per_day": 1})
    bed.lane.answers[WIDE_FLEX] = ["run"]
    bed.lane.hosts = [Host(units=1, ends="preempted")]
    assert bed.work().state is DispatchState.ATTEMPT_CAP
    assert pods.sent == []


def test_a_pin_with_a_reason_reaches_the_paid_lane_alone(beds: Any) -> None:
    bed, pods = beds(ladder=(POD,), pin=Pin(reason="the data is there", lane="runpod"))
    assert bed.work().state is DispatchState.SUCCEEDED
    assert len(pods.sent) == 1


def test_failed_work_is_tried_once_on_the_lane_of_last_resort_and_only_what_has_no_record(beds: Any) -> None:
    bed, pods = beds()
    bed.lane.answers[WIDE_FLEX] = ["run"]
    bed.lane.hosts = [Host(units=4)]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert [walk.started.reason for walk in phase.walks] == ["first", "workload_failover"]
    assert [a.rung.lane for a in phase.attempts] == ["gcp", "runpod"]
    selected = phase.attempts[1].selected
    assert selected is not None
    assert selected.evidence == (phase.attempts[0].intended.attempt_id,)
    assert len(pods.sent) == 1


def test_work_that_fails_again_after_its_failover_ends_there(beds: Any) -> None:
    bed, pods = beds()
    bed.lane.answers[WIDE_FLEX] = ["run"] * 3
    bed.lane.hosts = [Host(units=4)]
    pods.hosts = [Host(units=1)]
    phase = bed.work()
    assert phase.state is DispatchState.FAILED
    assert [a.rung.lane for a in phase.attempts] == ["gcp", "runpod"]


def test_a_failover_whose_machine_is_taken_back_goes_on_there_and_not_down_the_ladder_again(beds: Any) -> None:
    bed, pods = beds()
    bed.lane.answers[WIDE_FLEX] = ["run"] * 3
    bed.lane.hosts = [Host(units=2)]
    pods.hosts = [Host(units=1, ends="preempted"), Host()]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert [a.rung.lane for a in phase.attempts] == ["gcp", "runpod", "runpod"]


def test_a_failover_that_finds_no_machine_ends_with_the_failure_of_the_work(beds: Any) -> None:
    bed, pods = beds()
    pods.answers[POD_PLACE] = []
    bed.lane.answers[WIDE_FLEX] = ["run"]
    bed.lane.hosts = [Host(units=4)]
    phase = bed.work()
    assert phase.state is DispatchState.FAILED
    assert phase.ended is not None
    assert phase.ended.reason == "units_failed"
    assert "no machine" in phase.ended.hint
    assert (phase.ended.succeeded, phase.ended.total) == (4, 6)


@pytest.mark.parametrize(
    ("changes", "host"),
    [
        ({"policy": {"workload_failover": "never"}}, Host(units=4)),
        ({"ladder": LADDER}, Host(units=4)),
        ({}, Host(units=4, reason="store_failed: full")),
    ],
    ids=["policy", "no lane", "not the work"],
)
def test_no_failover_when_the_policy_says_never_or_there_is_no_such_lane_or_the_work_did_not_fail(
    beds: Any, changes: dict[str, Any], host: Host
) -> None:
    bed, pods = beds(**changes)
    bed.lane.answers[WIDE_FLEX] = ["run"]
    bed.lane.hosts = [host]
    phase = bed.work()
    assert phase.state is DispatchState.FAILED
    assert len(phase.attempts) == 1
    assert pods.sent == []


def test_a_run_limit_that_was_reached_is_no_reason_to_fail_over(beds: Any) -> None:
    bed, pods = beds()
    bed.lane.answers[WIDE_FLEX] = ["run"]
    bed.lane.hosts = [Host(ends="vanished", lasts=90_000.0, units=2)]
    bed.lane.poll_seconds = 600.0
    phase = bed.work(DISPATCH)
    assert phase.ended is not None
    assert (phase.state, phase.ended.reason) == (DispatchState.FAILED, "fence_expired")
    assert pods.sent == []
