"""The one classifier of SLURM's answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widelane.errors import InputError
from widelane.facts import lane_errors
from widelane.lanes.slurm.answer import JobState, Refusal, read
from widelane.lanes.slurm.classify import classify, rule
from widelane.models.attempt import Outcome, Scope

CASES: list[dict[str, Any]] = [case for case in lane_errors()["cases"] if case["lane"] == "slurm"]
CLASSES = {"permanent-config": "config", "auth": "permission", "job-failed": "workload", "job-oom": "workload"}
WAITING = "wait_until_deadline"


def by_id(name: str) -> Refusal | JobState:
    return read(next(case["input"] for case in CASES if case["id"] == name))


def test_the_recorded_answers_are_there() -> None:
    assert len(CASES) == 30


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_each_recorded_answer_has_its_class(case: dict[str, Any]) -> None:
    answer = read(case["input"])
    failure = classify(answer)
    assert failure.outcome == CLASSES.get(case["expect"]["class"], case["expect"]["class"])
    assert failure.code
    assert failure.message


@pytest.mark.parametrize("case", [case for case in CASES if case["op"] == "submit"], ids=lambda case: case["id"])
def test_a_refusal_reaches_as_far_as_what_is_to_be_done_about_it(case: dict[str, Any]) -> None:
    failure = classify(read(case["input"]))
    reach = {"stop_lane": Scope.LANE, "retry_later": Scope.LANE, "next_rung": Scope.RUNG, "degrade_width": Scope.RUNG}
    assert failure.scope is reach.get(case["expect"]["action"], Scope.INSTANCE)
    assert failure.outcome_known is not case["expect"]["orphan_risk"]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["input"].get("state") == "PENDING"], ids=lambda case: case["id"]
)
def test_a_job_is_left_in_the_queue_only_where_time_can_mend_it(case: dict[str, Any]) -> None:
    assert rule(read(case["input"])).waits is (case["expect"]["action"] == WAITING)


@pytest.mark.parametrize(
    ("reason", "outcome", "waits"),
    [
        ("None", Outcome.CAPACITY, True),
        ("", Outcome.CAPACITY, True),
        ("ReqNodeNotAvail, UnavailableNodes:gpu1", Outcome.CAPACITY, True),
        ("ReqNodeNotAvail,_UnavailableNodes:gpu[1-3]", Outcome.CAPACITY, True),
        ("JobHeldUser", Outcome.CAPACITY, True),
        ("Licenses", Outcome.QUOTA, True),
        ("QOSGrpGRES", Outcome.QUOTA, True),
        ("QOSMaxGRESPerUser", Outcome.QUOTA, True),
        ("QOSMaxGRESPerJob", Outcome.QUOTA, False),
        ("AssocMaxWallDurationPerJobLimit", Outcome.QUOTA, False),
        ("QOSMinGRES", Outcome.QUOTA, False),
        ("PartitionNodeLimit", Outcome.CONFIG, False),
        ("BadConstraints", Outcome.CONFIG, False),
        ("InvalidQOS", Outcome.CONFIG, False),
        ("AccountNotAllowed", Outcome.PERMISSION, False),
        ("QOSNotAllowed", Outcome.PERMISSION, False),
        ("PartitionInactive", Outcome.CAPACITY, False),
        ("launch_failed_requeued_held", Outcome.TRANSIENT, False),
        ("SomethingOfANewerRelease", Outcome.UNKNOWN, True),
    ],
)
def test_a_reason_to_wait_is_judged_by_its_first_word(reason: str, outcome: Outcome, waits: bool) -> None:
    found = rule(JobState("PENDING", reason))
    assert (found.outcome, found.waits) == (outcome, waits)


def test_the_line_before_the_general_one_has_the_reason() -> None:
    failure = classify(by_id("slurm-submit-mem-too-big"))
    assert (failure.code, failure.message) == ("MEMORY_TOO_BIG", "Memory specification can not be satisfied")
    assert failure.scope is Scope.RUNG


def test_a_quota_refusal_names_the_limit() -> None:
    assert classify(by_id("slurm-submit-qos-submit-limit")).metric == "QOSMaxSubmitJobPerUserLimit"
    assert classify(JobState("PENDING", "AssocGrpGRES")).metric == "AssocGrpGRES"


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (JobState("OUT_OF_MEMORY", "OutOfMemory", "0:125"), "OUT_OF_MEMORY"),
        (JobState("FAILED", "NonZeroExitCode", "1:0", "0:125"), "OUT_OF_MEMORY"),
        (JobState("FAILED", "NonZeroExitCode", "1:0", log_tail="CUDA out of memory. Tried"), "CUDA_OUT_OF_MEMORY"),
        (JobState("FAILED", "JobLaunchFailure", "0:9"), "EXIT_0"),
        (JobState("FAILED", "NonZeroExitCode", "137:0"), "EXIT_137"),
        (JobState("TIMEOUT", "TimeLimit", "0:0"), "TIMEOUT"),
        (JobState("CANCELLED by 0", "None", "0:0"), "CANCELLED"),
        (JobState("NODE_FAIL", "NodeDown", "0:0"), "NODE_FAIL"),
        (JobState("COMPLETED", "None", "0:0"), "NO_RESULT"),
    ],
)
def test_states_and_words_decide_over_exit_codes(state: JobState, code: str) -> None:
    assert classify(state).code == code


def test_what_no_rule_knows_is_unknown_and_keeps_its_text() -> None:
    failure = classify(Refusal(1, "sbatch: error: the moon is in the wrong house\n"))
    assert (failure.outcome, failure.message) == (Outcome.UNKNOWN, "the moon is in the wrong house")
    assert "wrong house" in failure.body


def test_an_answer_of_something_else_is_refused() -> None:
    with pytest.raises(InputError):
        read({"error": {"code": 404}})


@given(st.integers(-1, 300), st.text(max_size=400))
def test_no_text_makes_the_classifier_fail(code: int, text: str) -> None:
    failure = classify(Refusal(code, text))
    assert len(failure.body) <= 4000
    assert failure.code


@given(st.text(max_size=40), st.text(max_size=80), st.text(max_size=10), st.text(max_size=400))
def test_no_state_makes_the_classifier_fail(state: str, reason: str, exit_code: str, log: str) -> None:
    assert classify(JobState(state, reason, exit_code, "", 0, log)).code
