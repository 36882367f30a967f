"""What a walk does with each class of answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.walks import ZONES, Walked, make_rung
from widelane.dispatcher.walk import End, Skip, Try, WalkRules, evidence, next_step
from widelane.ledger.events import RungSkipped
from widelane.models.attempt import Outcome, Scope
from widelane.models.dispatch import DispatchState
from widelane.models.quota import Admits, QuotaBinding
from widelane.models.verdict import Rung

A, C, EAST = ZONES


def needs(rung: Rung, metric: str) -> float:
    return float(rung.width) if metric in ("GPUS", "GPUS_ALL_REGIONS") else 0.0


RULES = WalkRules(consumes=needs)
LADDER = (
    make_rung("a2-ultragpu-8g", 8, "FLEX_START"),
    make_rung("a2-ultragpu-8g", 8, "STANDARD"),
    make_rung("a2-ultragpu-4g", 4, "FLEX_START"),
    make_rung("a2-ultragpu-4g", 4, "STANDARD"),
)


def place(walk: Walked, rules: WalkRules = RULES) -> tuple[int, str]:
    step = next_step(walk.state, rules)
    assert isinstance(step, Try), step
    return step.rung, step.zone


def test_the_first_create_is_on_the_first_rung_in_its_first_zone() -> None:
    assert place(Walked(*LADDER)) == (0, A)


def test_capacity_tries_the_next_zone_and_then_the_next_rung() -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, Outcome.CAPACITY)
    assert place(walk) == (0, C)
    walk.failed(0, C, Outcome.CAPACITY)
    walk.failed(0, EAST, Outcome.CAPACITY)
    assert place(walk) == (1, A)


def test_a_zone_that_the_answer_names_goes_first() -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, Outcome.CAPACITY, zones_hint=("us-west4-b", EAST))
    assert place(walk) == (0, EAST)


def test_capacity_of_a_region_leaves_out_the_zones_of_that_region_only() -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, Outcome.CAPACITY, Scope.REGION)
    assert place(walk) == (0, EAST)


@pytest.mark.parametrize("outcome", [Outcome.QUEUE_EXPIRED, Outcome.QUEUE_VANISHED])
def test_a_lost_queue_request_goes_to_the_next_rung_not_the_next_zone(outcome: Outcome) -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, outcome, wait_seconds=600)
    assert place(walk) == (1, A)


def test_quota_of_a_region_closes_that_region_for_every_rung_that_needs_as_much() -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, Outcome.QUOTA, Scope.REGION, metric="GPUS")
    assert place(walk) == (0, EAST)
    walk.failed(0, EAST, Outcome.CAPACITY)
    assert place(walk) == (1, EAST)
    walk.failed(1, EAST, Outcome.CAPACITY)
    assert place(walk) == (2, A), "four GPUs may still fit where eight did not"


def test_quota_of_the_project_leaves_out_the_rungs_that_need_as_much_and_says_so() -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, Outcome.QUOTA, Scope.PROJECT, metric="GPUS_ALL_REGIONS")
    step = next_step(walk.state, RULES)
    assert isinstance(step, Skip)
    assert (step.rung, step.code) == (1, "quota")
    walk.state.skipped[1] = RungSkipped(walk=1, rung=1, code="quota", message="")
    assert place(walk) == (2, A)


def test_a_rung_that_quota_denies_is_skipped_with_the_metric_that_binds() -> None:
    binding = QuotaBinding(metric="GPUS", limit=4, usage=1, needed=8)
    walk = Walked(make_rung("a2-ultragpu-8g", 8, "STANDARD", admits=Admits.NO, binding_quota=binding), LADDER[3])
    step = next_step(walk.state, RULES)
    assert isinstance(step, Skip)
    assert "GPUS" in step.message
    assert "8" in step.message


@pytest.mark.parametrize("outcome", [Outcome.PERMISSION, Outcome.CONFIG])
def test_a_refusal_for_one_zone_drops_that_zone_for_the_machine_type(outcome: Outcome) -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, outcome, Scope.ZONE)
    assert place(walk) == (0, C)
    walk.failed(0, C, Outcome.CAPACITY)
    walk.failed(0, EAST, Outcome.CAPACITY)
    assert place(walk) == (1, C)


@pytest.mark.parametrize("outcome", [Outcome.PERMISSION, Outcome.CONFIG])
def test_a_refusal_for_one_rung_drops_that_rung(outcome: Outcome) -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, outcome, Scope.RUNG)
    assert place(walk) == (1, A)


@pytest.mark.parametrize("outcome", [Outcome.PERMISSION, Outcome.CONFIG])
@pytest.mark.parametrize("scope", [Scope.REGION, Scope.LANE, Scope.PROJECT])
def test_a_refusal_of_wider_reach_stops_and_says_what_to_fix(outcome: Outcome, scope: Scope) -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, outcome, scope, hint="grant compute.instances.create")
    step = next_step(walk.state, RULES)
    assert isinstance(step, End)
    assert (step.state, step.hint) == (DispatchState.STOPPED, "grant compute.instances.create")


def test_an_answer_that_nobody_knows_stops_the_walk() -> None:
    walk = Walked(*LADDER)
    walk.failed(0, A, Outcome.UNKNOWN, Scope.RUNG)
    step = next_step(walk.state, RULES)
    assert isinstance(step, End)
    assert step.state is DispatchState.STOPPED


def test_a_passing_failure_is_tried_again_in_its_place_a_bounded_number_of_times() -> None:
    walk = Walked(*LADDER)
    for repeat in range(RULES.transient_tries):
        step = next_step(walk.state, RULES)
        assert isinstance(step, Try)
        assert (step.rung, step.zone, step.repeat) == (0, A, repeat)
        walk.failed(0, A, Outcome.TRANSIENT, Scope.INSTANCE)
    assert place(walk) == (0, C)


def test_a_kind_of_machine_that_died_at_boot_twice_is_left_out() -> None:
    rules = WalkRules(consumes=needs, boot_looped=frozenset({("a2-ultragpu-8g", "FLEX_START")}))
    step = next_step(Walked(*LADDER).state, rules)
    assert isinstance(step, Skip)
    assert step.code == "boot_loop"


def test_queueing_stops_when_the_walk_has_waited_its_budget() -> None:
    rules = WalkRules(consumes=needs, rung_wait_seconds=600, total_wait_seconds=650)
    walk = Walked(*LADDER)
    first = next_step(walk.state, rules)
    assert isinstance(first, Try)
    assert first.wait_seconds == 600
    walk.failed(0, A, Outcome.QUEUE_EXPIRED, wait_seconds=600)
    for zone in ZONES:
        walk.failed(1, zone, Outcome.CAPACITY)
    step = next_step(walk.state, rules)
    assert isinstance(step, Skip)
    assert (step.rung, step.code) == (2, "wait_budget")


def test_a_ladder_that_is_used_up_ends_exhausted() -> None:
    walk = Walked(LADDER[1])
    for zone in ZONES:
        walk.failed(0, zone, Outcome.CAPACITY)
    step = next_step(walk.state, RULES)
    assert isinstance(step, End)
    assert step.state is DispatchState.EXHAUSTED


def test_a_rung_without_zones_is_tried_once_in_its_lane() -> None:
    walk = Walked(make_rung("local", 0, "STANDARD", lane="local", zones=()))
    assert place(walk) == (0, "local")
    walk.failed(0, "local", Outcome.CAPACITY)
    assert isinstance(next_step(walk.state, RULES), End)


PAID = WalkRules(consumes=needs, paid_lanes=frozenset({"runpod"}))
PAID_RUNG = make_rung("H100", 8, "STANDARD", lane="runpod", zones=("any",))


def test_a_paid_lane_is_reached_after_every_rung_before_it_was_out_of_stock() -> None:
    walk = Walked(LADDER[1], PAID_RUNG)
    for zone in ZONES:
        walk.failed(0, zone, Outcome.CAPACITY)
    assert place(walk, PAID) == (1, "any")
    assert evidence(walk.state, "runpod") == ("a1", "a2", "a3")


@pytest.mark.parametrize("outcome", [Outcome.PERMISSION, Outcome.CONFIG])
def test_a_paid_lane_is_not_reached_over_a_refusal(outcome: Outcome) -> None:
    walk = Walked(LADDER[1], PAID_RUNG)
    for zone in ZONES:
        walk.failed(0, zone, outcome, Scope.ZONE)
    step = next_step(walk.state, PAID)
    assert isinstance(step, End)
    assert step.reason == "no_evidence"


def test_a_paid_lane_alone_on_the_ladder_is_not_reached() -> None:
    step = next_step(Walked(PAID_RUNG).state, PAID)
    assert isinstance(step, End)
    assert step.reason == "no_evidence"


NARROW_PAID_RUNG = make_rung("H100", 4, "STANDARD", lane="runpod", zones=("any",))


def test_a_balance_that_does_not_suffice_ends_its_whole_lane() -> None:
    walk = Walked(LADDER[1], PAID_RUNG, NARROW_PAID_RUNG)
    for zone in ZONES:
        walk.failed(0, zone, Outcome.CAPACITY)
    walk.failed(1, "any", Outcome.QUOTA, Scope.LANE, metric="balance")
    step = next_step(walk.state, PAID)
    assert isinstance(step, End)
    assert step.state is DispatchState.EXHAUSTED


def test_work_that_can_not_start_on_one_machine_is_not_tried_on_the_next() -> None:
    walk = Walked(PAID_RUNG, NARROW_PAID_RUNG)
    walk.failed(0, "any", Outcome.WORKLOAD, Scope.LANE)
    step = next_step(walk.state, RULES)
    assert isinstance(step, End)
    assert step.state is DispatchState.STOPPED


outcomes = st.sampled_from([o for o in Outcome if o not in (Outcome.GRANTED, Outcome.SKIPPED, Outcome.CANCELLED)])
answers = st.lists(st.tuples(outcomes, st.sampled_from(Scope), st.sampled_from([None, "GPUS"])), max_size=60)


def play(ladder: tuple[Rung, ...], given_answers: list[Any], rules: WalkRules) -> tuple[Walked, list[Try], End | None]:
    walk, tries = Walked(*ladder), []
    for outcome, scope, metric in given_answers:
        step = next_step(walk.state, rules)
        while isinstance(step, Skip):
            assert step.rung not in walk.state.skipped
            walk.state.skipped[step.rung] = RungSkipped(walk=1, rung=step.rung, code=step.code, message="")
            step = next_step(walk.state, rules)
        if isinstance(step, End):
            return walk, tries, step
        tries.append(step)
        walk.failed(step.rung, step.zone, outcome, scope, metric=metric, wait_seconds=step.wait_seconds)
    return walk, tries, None


@given(answers)
def test_whatever_the_answers_width_never_rises_and_the_walk_goes_forward(given_answers: list[Any]) -> None:
    _, tries, _ = play((*LADDER, PAID_RUNG), given_answers, PAID)
    widths = [LADDER[step.rung].width for step in tries if step.rung < len(LADDER)]
    assert widths == sorted(widths, reverse=True)
    assert [step.rung for step in tries] == sorted(step.rung for step in tries)


@given(answers)
def test_whatever_the_answers_a_paid_lane_has_evidence_of_every_lane_before(given_answers: list[Any]) -> None:
    walk, tries, _ = play((*LADDER, PAID_RUNG), given_answers, PAID)
    if any(step.rung == len(LADDER) for step in tries):
        before = [a for a in walk.state.attempts if a.intended.rung < len(LADDER)]
        assert {a.outcome for a in before} <= {
            Outcome.CAPACITY,
            Outcome.QUOTA,
            Outcome.QUEUE_EXPIRED,
            Outcome.QUEUE_VANISHED,
            Outcome.PREEMPTED,
        }


@given(answers)
def test_whatever_the_answers_no_place_is_tried_more_often_than_the_rules_say(given_answers: list[Any]) -> None:
    _, tries, _ = play(LADDER, given_answers, RULES)
    places = [(step.rung, step.zone) for step in tries]
    assert all(places.count(p) <= RULES.transient_tries for p in places)


@given(st.sampled_from([o for o in Outcome if o not in (Outcome.GRANTED, Outcome.SKIPPED)]), st.sampled_from(Scope))
def test_an_answer_repeated_for_ever_ends_the_walk(outcome: Outcome, scope: Scope) -> None:
    _, _, end = play(LADDER, [(outcome, scope, None)] * 200, RULES)
    assert end is not None
