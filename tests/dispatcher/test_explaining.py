"""What explain-error says of an answer is what the walk does about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.walks import Walked, make_rung
from widelane.dispatcher.explaining import explain_error
from widelane.dispatcher.walk import End, Try, WalkRules, next_step
from widelane.facts import gce_errors, lane_errors
from widelane.lanes.pasted.judge import judge
from widelane.models.error_explanation import Action

GCE: list[dict[str, Any]] = gce_errors()["cases"]
LANES: list[dict[str, Any]] = lane_errors()["cases"]
FOLLOWS: dict[str, set[Action]] = {
    "stop_lane": {Action.STOP, Action.NEXT_LANE, Action.NEXT_ZONE},
    "retry_later": {Action.STOP},
    "next_rung": {Action.NEXT_RUNG, Action.NEXT_ZONE, Action.SKIP_METRIC},
    "degrade_width": {Action.NEXT_RUNG},
    "fix_request": {Action.STOP},
    "reconcile_then_retry": {Action.LOOK_BY_NAME},
    "retry_same": {Action.REPEAT, Action.LOOK_BY_NAME},
    "backoff": {Action.REPEAT},
    "release_once": {Action.REPEAT},
    "use_own_rc_file": {Action.REPEAT},
    "wait_until_deadline": {Action.WAIT},
    "requeue_same": {Action.WALK_AGAIN},
    "new_pod": {Action.NEXT_ZONE},
    "terminate_and_new_pod": {Action.NEXT_ZONE},
    "no_retry": {Action.STOP},
    "retry_more_memory": {Action.STOP},
    "retry_wider_or_smaller_batch": {Action.STOP},
    "check_oom_then_no_retry": {Action.STOP},
    "resume_longer": {Action.STOP},
    "cancel_and_mark": {Action.STOP},
    "terminate_and_mark": {Action.STOP},
    "reconcile_then_mark": {Action.STOP},
}
"""What the walk does where the table advises: it changes no request by itself, so that advice to mend one is a stop."""


def explained(lane: str, answer: object) -> Any:
    return explain_error(lane, json.dumps(answer).encode())


@pytest.mark.parametrize("case", LANES, ids=[case["id"] for case in LANES])
def test_the_action_for_a_recorded_answer_is_in_keeping_with_the_table(case: dict[str, Any]) -> None:
    found = explained(case["lane"], case["input"])
    assert found.action in FOLLOWS[case["expect"]["action"]]
    assert found.may_have_happened is (found.action is Action.LOOK_BY_NAME)


@pytest.mark.parametrize("case", GCE, ids=[case["name"] for case in GCE])
def test_the_action_is_the_next_step_of_a_walk_that_failed_so(case: dict[str, Any]) -> None:
    failure = judge("gcp", json.dumps(case).encode()).failure
    told = explained("gcp", case)
    walked = Walked(make_rung("a2-ultragpu-8g", 8, "SPOT"), make_rung("a2-ultragpu-4g", 4, "SPOT"))
    more = failure.model_dump(include={"metric", "hint"})
    walked.failed(0, "us-central1-a", failure.outcome, failure.scope, **more)
    step = next_step(walked.state, WalkRules(consumes=lambda rung, _metric: float(rung.width)))
    if told.action is Action.STOP:
        assert isinstance(step, End)
        return
    assert isinstance(step, Try)
    place = (step.rung, step.zone)
    expected = {
        Action.REPEAT: [(0, "us-central1-a")],
        Action.LOOK_BY_NAME: [(0, "us-central1-a")],
        Action.NEXT_ZONE: [(0, "us-central1-c")],
        Action.NEXT_REGION: [(0, "us-east4-c")],
        Action.NEXT_RUNG: [(1, "us-central1-a")],
        Action.SKIP_METRIC: [(0, "us-east4-c"), (1, "us-central1-a")],
    }
    assert place in expected[told.action]


@pytest.mark.parametrize("case", [*GCE, *LANES], ids=[case.get("id", case.get("name")) for case in [*GCE, *LANES]])
def test_every_explanation_says_why_and_what_follows(case: dict[str, Any]) -> None:
    told = explained(case.get("lane", "gcp"), case)
    why, _, what = told.reason.partition("; ")
    assert why
    assert what


def test_the_metric_that_binds_is_named_in_what_follows() -> None:
    case = next(case for case in GCE if case["classification"] == "quota")
    told = explained("gcp", case)
    assert told.action is Action.SKIP_METRIC
    assert told.metric is not None
    assert told.metric in told.reason


def test_what_works_calls_for_nothing() -> None:
    told = explain_error("slurm", b"RUNNING None")
    assert (told.action, told.reason) == (Action.NONE, "no failure: the job is RUNNING")


def test_the_json_calls_the_class_by_its_name() -> None:
    told = json.loads(explain_error("ssh", b"rc=255").model_dump_json())
    assert {"class", "scope", "action", "reason"} <= set(told)
    assert told["class"] == "transient"
