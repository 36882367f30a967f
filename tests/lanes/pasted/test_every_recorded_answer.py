"""Every row of the tables of answers, pasted as it stands and as people would copy it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from widelane.facts import gce_errors, lane_errors
from widelane.lanes.pasted.judge import judge

CLASSES = {"permanent-config": "config", "auth": "permission", "job-failed": "workload", "job-oom": "workload"}
SCOPES = {"request": "rung", "unknown-outcome": "instance"}
GCE: list[dict[str, Any]] = gce_errors()["cases"]
LANES: list[dict[str, Any]] = lane_errors()["cases"]


def pasted(lane: str, answer: object) -> Any:
    data = answer if isinstance(answer, str) else json.dumps(answer)
    return judge(lane, data.encode())


@pytest.mark.parametrize("case", GCE, ids=[case["name"] for case in GCE])
def test_a_row_of_compute_engine_has_its_class_and_scope(case: dict[str, Any]) -> None:
    found = pasted("gcp", case).failure
    assert found.outcome == CLASSES.get(case["classification"], case["classification"])
    assert found.scope == SCOPES.get(case["scope"], case["scope"])
    assert found.outcome_known is (case["scope"] != "unknown-outcome")


@pytest.mark.parametrize(
    "case",
    [case for case in GCE if isinstance(case["body"], dict)],
    ids=[case["name"] for case in GCE if isinstance(case["body"], dict)],
)
def test_a_body_of_compute_engine_alone_has_its_class(case: dict[str, Any]) -> None:
    found = pasted("gcp", case["body"]).failure
    assert found.outcome == CLASSES.get(case["classification"], case["classification"])
    assert found.scope == SCOPES.get(case["scope"], case["scope"])


@pytest.mark.parametrize("case", LANES, ids=[case["id"] for case in LANES])
def test_a_row_of_the_other_lanes_has_its_class(case: dict[str, Any]) -> None:
    found = pasted(case["lane"], case)
    assert found.failure.outcome == CLASSES.get(case["expect"]["class"], case["expect"]["class"])
    assert not found.fine


@pytest.mark.parametrize("case", LANES, ids=[case["id"] for case in LANES])
def test_an_answer_of_the_other_lanes_alone_has_its_class(case: dict[str, Any]) -> None:
    found = pasted(case["lane"], case["input"]).failure
    assert found.outcome == CLASSES.get(case["expect"]["class"], case["expect"]["class"])


def as_line(given: dict[str, Any]) -> str:
    """As a terminal shows it."""
    if "state" in given:
        words = [given["state"], given["reason"], given.get("exit_code", ""), given.get("derived_exit_code", "")]
        restarts = f"restarts={given['restarts']}" if given.get("restarts") else ""
        return " ".join(word for word in (*words, restarts, "\n" + given.get("log_tail", "")) if word)
    if "stderr" in given:
        return str(given["stderr"])
    return f"{given['exc_type']}: {given['message']}"


AS_TEXT = [case for case in LANES if any(case["input"].get(key) for key in ("state", "stderr", "exc_type"))]


@pytest.mark.parametrize("case", AS_TEXT, ids=[case["id"] for case in AS_TEXT])
def test_an_answer_as_a_terminal_shows_it_has_its_class(case: dict[str, Any]) -> None:
    found = pasted(case["lane"], as_line(case["input"])).failure
    assert found.outcome == CLASSES.get(case["expect"]["class"], case["expect"]["class"])


BODIES = [case for case in LANES if "body" in case["input"]]


@pytest.mark.parametrize("case", BODIES, ids=[case["id"] for case in BODIES])
def test_a_body_of_runpod_alone_has_its_class(case: dict[str, Any]) -> None:
    found = pasted("runpod", case["input"]["body"]).failure
    assert found.outcome == CLASSES.get(case["expect"]["class"], case["expect"]["class"])
