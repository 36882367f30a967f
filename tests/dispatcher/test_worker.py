"""A dispatch from its request to its end, over a lane whose every answer the test decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.lane import STOCKOUT, Host
from tests.fakes.runs import DISPATCH, LADDER, RUN, Bed, make_phase
from widelane.errors import LaneAuthError, LaneUnknownError
from widelane.lanes.protocol import Granted
from widelane.ledger import Journal
from widelane.ledger.events import CancelRequested
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.dispatch import DispatchState
from widelane.models.quota import QuotaMetric, QuotaSnapshot, RegionQuota

A, C = "us-central1-a", "us-central1-c"
WIDE_FLEX = ("a2-ultragpu-8g", "FLEX_START", A)
WIDE = ("a2-ultragpu-8g", "STANDARD", A)
FOUR_FLEX = ("a2-ultragpu-4g", "FLEX_START", A)


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path)
    yield made
    made.close()


def rows(bed: Bed) -> list[tuple[str, str, str]]:
    return [
        (f"{a.rung.width} {a.rung.provisioning_model.value}", a.intended.zone, (a.outcome or Outcome.UNKNOWN).value)
        for a in bed.phase().attempts
    ]


def test_wide_rungs_without_stock_degrade_to_the_next_width_and_every_zone_is_recorded(bed: Bed) -> None:
    bed.lane.answers[FOUR_FLEX] = ["run"]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert rows(bed) == [
        ("8 FLEX_START", A, "capacity"),
        ("8 FLEX_START", C, "capacity"),
        ("8 STANDARD", A, "capacity"),
        ("8 STANDARD", C, "capacity"),
        ("4 FLEX_START", A, "granted"),
    ]
    granted = phase.attempts[-1]
    assert granted.selected is not None
    assert granted.selected.degraded
    assert granted.selected.evidence == tuple(a.intended.attempt_id for a in phase.attempts[:-1])
    assert granted.realized is not None
    assert granted.realized.realized_width == 4


def test_the_machine_is_gone_before_the_dispatch_ends(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run"]
    bed.work()
    assert bed.lane.machines_ == {}
    kinds = bed.kinds()
    assert kinds.index("released") < kinds.index("phase_ended")


def test_a_row_is_in_the_journal_before_each_create_is_sent(bed: Bed) -> None:
    def check(launch: Any) -> None:
        intended = [record.event for record in bed.journal.events(RUN) if record.event.kind == "attempt_intended"]
        assert intended[-1].attempt_id == launch.attempt_id
        assert launch.fence_seconds >= 600
        assert bed.store.exists(launch.spec_key)

    bed.lane.before_create = check
    bed.lane.answers[FOUR_FLEX] = ["run"]
    bed.work()
    assert len(bed.lane.sent) == 5


def test_a_phase_whose_units_all_have_records_creates_nothing(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run"]
    bed.work()
    again = Bed(bed.home / "again", store_url=bed.store.url)
    try:
        phase = again.work()
        assert phase.state is DispatchState.SUCCEEDED
        assert again.lane.sent == []
        assert phase.started is not None
        assert phase.started.already_done == 6
    finally:
        again.close()


def test_an_answer_that_was_lost_is_asked_for_by_name_and_the_one_machine_adopted(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run-unheard"]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert len(phase.attempts) == 1
    assert bed.lane.alive_at_once == 1


def test_a_create_whose_outcome_nobody_knows_is_repeated_with_the_same_request_id(bed: Bed) -> None:
    lost = Failure(outcome=Outcome.TRANSIENT, scope=Scope.INSTANCE, code="503", message="", outcome_known=False)
    bed.lane.answers[WIDE_FLEX] = [lost, lost, "run"]
    bed.work()
    assert len({launch.request_id for launch in bed.lane.sent}) == 1
    assert len(bed.lane.sent) == 3


def test_after_an_operation_that_failed_for_a_passing_reason_a_new_request_id_is_used(bed: Bed) -> None:
    failed = Failure(outcome=Outcome.TRANSIENT, scope=Scope.ZONE, code="INTERNAL_ERROR", message="")
    bed.lane.answers[WIDE_FLEX] = [failed, "run"]
    phase = bed.work()
    assert len({launch.request_id for launch in bed.lane.sent}) == 2
    assert [a.intended.zone for a in phase.attempts] == [A, A]


def test_a_queued_request_that_gets_stock_in_time_is_used(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["queue"]
    pause = bed.lane.pause
    waited: list[float] = []

    def grant_after_a_while(seconds: float) -> None:
        waited.append(seconds)
        pause(seconds)
        for name, machine in list(bed.lane.machines_.items()):
            if machine.state.value == "queued" and sum(waited) > 60:
                bed.lane.grant(name)
                bed.lane.working[name] = (bed.lane.sent[-1], Host())

    bed.lane.pause = grant_after_a_while  # type: ignore[method-assign]  # the scripted lane is the test's own
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert len(phase.attempts) == 1
    assert phase.attempts[0].queued


def test_a_queued_request_that_waits_its_budget_is_cancelled_and_the_walk_goes_on(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["queue"]
    bed.lane.answers[WIDE] = ["run"]
    phase = bed.work()
    assert rows(bed)[:2] == [("8 FLEX_START", A, "queue_expired"), ("8 STANDARD", A, "granted")]
    assert phase.attempts[0].intended.name in bed.lane.deleted
    assert bed.lane.alive_at_once == 1
    assert bed.clock.seconds >= 600


@pytest.mark.parametrize("last_word", ["preempted", "shut-down"])
def test_units_of_a_machine_that_was_taken_back_run_on_the_next_one_from_the_top_width(
    bed: Bed, last_word: str
) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run", "run"]
    bed.lane.hosts = [Host(units=2, ends=last_word), Host()]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert [a.outcome for a in phase.attempts] == [Outcome.PREEMPTED, Outcome.GRANTED]
    assert len(phase.walks) == 2
    assert bed.lane.alive_at_once == 1


def test_machines_that_are_taken_back_for_ever_end_the_dispatch(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run"] * 50
    bed.lane.hosts = [Host(units=0, ends="preempted")] * 50
    phase = bed.work()
    assert phase.state is DispatchState.STOPPED
    assert phase.ended is not None
    assert phase.ended.reason == "preempted_too_often"
    assert bed.lane.machines_ == {}


def test_a_kind_of_machine_that_dies_before_work_twice_is_left_for_the_next_rung(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run"] * 9
    bed.lane.answers[WIDE] = ["run"]
    bed.lane.hosts = [Host(ends="silent"), Host(ends="silent"), Host()]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert [(a.rung.provisioning_model.value, a.lost.code if a.lost else "") for a in phase.attempts] == [
        ("FLEX_START", "boot_silent"),
        ("FLEX_START", "boot_silent"),
        ("STANDARD", ""),
    ]


def test_one_machine_that_two_attempts_saw_die_is_one_death(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run"] * 9
    bed.lane.only_id = "4711"
    bed.lane.hosts = [Host(ends="silent"), Host(ends="silent"), Host()]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert [a.rung.provisioning_model.value for a in phase.attempts] == ["FLEX_START"] * 3
    assert {a.selected.machine_id for a in phase.attempts if a.selected} == {"4711"}


def test_a_machine_that_worked_and_deleted_itself_between_two_questions_is_not_taken_for_a_miss(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["accept"]
    pause, name = bed.lane.pause, f"wl-{DISPATCH}-1"

    def work_unseen(seconds: float) -> None:
        while name in bed.lane.working:
            pause(seconds)

    bed.lane.pause = work_unseen  # type: ignore[method-assign]  # the scripted lane is the test's own
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert [a.outcome for a in phase.attempts] == [Outcome.GRANTED]
    assert phase.attempts[0].realized is not None


def test_failed_units_end_the_dispatch_failed_and_walk_no_further(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run", "run"]
    bed.lane.hosts = [Host(units=4)]
    phase = bed.work()
    assert phase.state is DispatchState.FAILED
    assert phase.ended is not None
    assert (phase.ended.total, phase.ended.succeeded, phase.ended.failed) == (6, 4, 2)
    assert len(phase.attempts) == 1
    assert bed.lane.machines_ == {}


def test_a_host_with_fewer_devices_than_the_plan_can_use_is_let_go(tmp_path: Path) -> None:
    bed = Bed(tmp_path, [make_phase(min_width=4)])
    try:
        bed.lane.answers[WIDE_FLEX] = ["run"]
        bed.lane.hosts = [Host(devices=2, ends="running")]
        phase = bed.work()
        assert phase.state is DispatchState.STOPPED
        assert phase.ended is not None
        assert phase.ended.reason == "too_few_devices"
        assert bed.lane.machines_ == {}
    finally:
        bed.close()


def test_the_width_that_the_host_counted_is_reported_not_the_one_asked_for(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run"]
    bed.lane.hosts = [Host(devices=7)]
    phase = bed.work()
    realized = phase.attempts[0].realized
    assert realized is not None
    assert (realized.realized_width, realized.expected_width) == (7, 8)


@pytest.mark.parametrize("moment", ["queued", "running"])
def test_a_cancel_lets_the_machine_go_and_ends_cancelled(bed: Bed, moment: str) -> None:
    bed.lane.answers[WIDE_FLEX] = ["queue" if moment == "queued" else "run"]
    bed.lane.hosts = [Host(ends="running")]
    pause = bed.lane.pause
    asked: list[int] = []

    def cancel_once(seconds: float) -> None:
        pause(seconds)
        if not asked:
            asked.append(1)
            other = Journal(bed.home / "ledger.db", bed.clock)
            other.append(RUN, CancelRequested(by="a person"))
            other.close()

    bed.lane.pause = cancel_once  # type: ignore[method-assign]  # the scripted lane is the test's own
    phase = bed.work()
    assert phase.state is DispatchState.CANCELLED
    assert bed.lane.machines_ == {}
    assert phase.attempts[0].outcome is Outcome.CANCELLED


def test_a_refused_permission_stops_the_walk_with_what_to_fix(bed: Bed) -> None:
    refused = Failure(
        outcome=Outcome.PERMISSION, scope=Scope.PROJECT, code="forbidden", message="no", hint="grant compute.admin"
    )
    bed.lane.answers[WIDE_FLEX] = [refused]
    phase = bed.work()
    assert phase.state is DispatchState.STOPPED
    assert phase.ended is not None
    assert phase.ended.hint == "grant compute.admin"
    assert len(bed.lane.sent) == 1


def test_missing_credentials_at_the_first_create_stop_with_the_command_to_type(bed: Bed) -> None:
    bed.lane.trouble = [LaneAuthError("gcp", "no credentials", hint="gcloud auth application-default login")]
    phase = bed.work()
    assert phase.state is DispatchState.STOPPED
    assert phase.ended is not None
    assert (phase.ended.reason, phase.ended.hint) == ("login_needed", "gcloud auth application-default login")
    assert bed.lane.sent == []


def test_a_service_that_does_not_answer_is_asked_again_and_nothing_is_concluded(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run-unheard"]
    silent = LaneUnknownError("gcp", "no answer")

    def go_silent(_launch: Any) -> None:
        bed.lane.trouble = [silent] * 7
        bed.lane.before_create = lambda _again: None

    bed.lane.before_create = go_silent
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert len(phase.attempts) == 1
    assert bed.kinds().count("trouble") == 1


def test_a_machine_of_another_type_than_asked_for_is_let_go_and_the_next_rung_tried(tmp_path: Path) -> None:
    bed = Bed(tmp_path)
    try:
        bed.lane.answers[WIDE_FLEX] = ["run"]
        bed.lane.answers[WIDE] = ["run"]
        make = bed.lane._make

        def swap(launch: Any, how: str) -> Any:
            made = make(launch, how)
            if launch.rung.provisioning_model.value == "FLEX_START" and isinstance(made, Granted):
                other = replace(made.machine, provisioning_model="STANDARD")
                bed.lane.machines_[launch.name] = other
                return Granted(other)
            return made

        bed.lane._make = swap  # type: ignore[method-assign]  # the scripted lane is the test's own
        phase = bed.work()
        assert phase.attempts[0].failed is not None
        assert phase.attempts[0].failed.code == "realized_mismatch"
        assert phase.state is DispatchState.SUCCEEDED
        assert bed.lane.alive_at_once == 1
    finally:
        bed.close()


def test_a_name_that_is_another_s_is_never_touched(bed: Bed) -> None:
    conflict = Failure(outcome=Outcome.CONFLICT, scope=Scope.INSTANCE, code="409", message="exists")
    bed.lane.answers[WIDE_FLEX] = [conflict, "run"]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    assert phase.attempts[0].intended.name not in bed.lane.deleted


def test_a_ladder_without_stock_ends_exhausted_with_every_attempt(bed: Bed) -> None:
    phase = bed.work()
    assert phase.state is DispatchState.EXHAUSTED
    assert [a.outcome for a in phase.attempts] == [Outcome.CAPACITY] * 8


def test_a_rung_that_quota_denies_is_skipped_without_a_create(tmp_path: Path) -> None:
    bed = Bed(tmp_path, ladder=(LADDER[1], LADDER[2]))
    four = QuotaMetric(metric="NVIDIA_A100_80GB_GPUS", limit=4, usage=0)
    region = RegionQuota(region="us-central1", metrics=(four,))
    bed.lane.snapshot = QuotaSnapshot(project="p", taken_at="now", regions=(region,), global_metrics=None)
    try:
        bed.lane.answers[FOUR_FLEX] = ["run"]
        phase = bed.work()
        assert [launch.rung.width for launch in bed.lane.sent] == [4]
        skipped = phase.walks[0].skipped
        assert list(skipped) == [0]
        assert "NVIDIA_A100_80GB_GPUS" in skipped[0].message
    finally:
        bed.close()


def test_the_day_s_walks_are_used_up_after_as_many_walks_with_an_answer_about_capacity(tmp_path: Path) -> None:
    settings = {"home": str(tmp_path), "policy": {"walks_per_day": 2, "preemption_rewalks": 50}}
    bed = Bed(tmp_path, settings=settings)
    try:
        bed.lane.answers[WIDE_FLEX] = ["run"] * 9
        bed.lane.hosts = [Host(units=1, ends="preempted")] * 9
        phase = bed.work()
        assert phase.state is DispatchState.ATTEMPT_CAP
        assert phase.ended is not None
        assert "a2-ultragpu-8g" in phase.ended.hint
        assert len(phase.walks) == 2
    finally:
        bed.close()


def test_a_static_split_keeps_the_number_of_shards_of_its_first_lease(tmp_path: Path) -> None:
    phase = make_phase(
        command="python train.py --shard {shard} --of {shards}", outputs=("out/{shard}.json",), axes=None
    )
    bed = Bed(tmp_path, [phase])
    try:
        bed.lane.answers[FOUR_FLEX] = ["run"]
        bed.lane.answers[WIDE_FLEX] = [STOCKOUT, "run"]
        bed.lane.hosts = [Host(units=1, ends="preempted"), Host()]
        ended = bed.work()
        assert ended.state is DispatchState.SUCCEEDED
        assert ended.ended is not None
        assert ended.ended.total == 4
        assert ended.attempts[-1].rung.width == 8
    finally:
        bed.close()


def test_the_dispatch_is_named_in_every_attempt(bed: Bed) -> None:
    bed.work()
    assert all(launch.name == f"wl-{launch.attempt_id}" for launch in bed.lane.sent)
    assert all(launch.attempt_id.startswith(DISPATCH) for launch in bed.lane.sent)
