"""The one classifier of Compute Engine's answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widelane.facts import gce_errors
from widelane.lanes.gcp import answer
from widelane.lanes.gcp.classify import classify
from widelane.models.attempt import Failure, Outcome, Scope

CASES: list[dict[str, Any]] = gce_errors()["cases"]
CLASSES = {"permanent-config": "config"}
SCOPES = {"request": "rung", "unknown-outcome": "instance"}


def judge(case: dict[str, Any]) -> Failure:
    if case["kind"] == "transport":
        return classify(answer.transport(case["body"]["exception"]))
    if case["kind"] == "http":
        return classify(answer.http(case["http_status"], case["body"]))
    return classify(answer.operation(case["body"]))


def operation_with(*errors: tuple[str, str]) -> Failure:
    items = [{"code": code, "message": message} for code, message in errors]
    return classify(answer.operation({"status": "DONE", "error": {"errors": items}}))


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_recorded_answer_has_its_class_and_scope(case: dict[str, Any]) -> None:
    failure = judge(case)
    assert failure.outcome == CLASSES.get(case["classification"], case["classification"])
    assert failure.scope == SCOPES.get(case["scope"], case["scope"])
    assert failure.outcome_known is (case["scope"] != "unknown-outcome")
    assert failure.code


def test_zones_named_in_a_stockout_are_handed_on_in_order() -> None:
    case = next(case for case in CASES if case["name"] == "zone_pool_exhausted_with_details_zones_suggested")
    assert judge(case).zones_hint == ("us-central1-a", "us-central1-f")


@pytest.mark.parametrize("case", [case for case in CASES if case["classification"] == "quota"], ids=lambda c: c["name"])
def test_a_quota_refusal_names_its_metric(case: dict[str, Any]) -> None:
    metric = judge(case).metric
    assert metric is not None
    assert f"'{metric}'" in json.dumps(case["body"])


def test_a_quota_refusal_without_quota_in_its_text_takes_the_metric_from_the_details() -> None:
    error = {
        "code": "QUOTA_EXCEEDED",
        "message": "Too much.",
        "errorDetails": [{"quotaInfo": {"limitName": "A2-CPUS-per-project-region", "limit": 12.0}}],
    }
    failure = classify(answer.operation({"status": "DONE", "error": {"errors": [error]}}))
    assert (failure.outcome, failure.metric) == (Outcome.QUOTA, "A2_CPUS")


def test_the_error_that_decides_gives_the_code_and_the_message() -> None:
    failure = operation_with(("SOMETHING_ELSE", "first"), ("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded."))
    assert (failure.code, failure.message) == ("QUOTA_EXCEEDED", "Quota 'CPUS' exceeded.")


def test_a_capacity_code_with_an_incompatible_machine_is_a_mistake_of_ours() -> None:
    failure = operation_with(("ZONE_RESOURCE_POOL_EXHAUSTED", "[a, b] features are not compatible for creating."))
    assert (failure.outcome, failure.scope) == (Outcome.CONFIG, Scope.RUNG)


def test_an_insert_that_cannot_find_its_own_instance_lost_it_to_the_stock() -> None:
    failure = classify(
        answer.operation(
            {
                "status": "DONE",
                "operationType": "insert",
                "targetLink": "https://www.googleapis.com/compute/v1/projects/p/zones/z-a/instances/wl-1",
                "error": {
                    "errors": [
                        {
                            "code": "RESOURCE_NOT_FOUND",
                            "message": "The resource 'projects/p/zones/z-a/instances/wl-1' was not found",
                        }
                    ]
                },
            }
        )
    )
    assert (failure.outcome, failure.scope) == (Outcome.CAPACITY, Scope.ZONE)


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("projects/p/global/images/family/none", Scope.LANE),
        ("projects/p/global/networks/none", Scope.LANE),
        ("projects/p/regions/r/subnetworks/none", Scope.LANE),
        ("projects/p/zones/z-a/machineTypes/a2-ultragpu-8g", Scope.ZONE),
    ],
)
def test_a_missing_thing_is_configuration_and_its_scope_follows_the_thing(path: str, scope: Scope) -> None:
    failure = operation_with(("RESOURCE_NOT_FOUND", f"The resource '{path}' was not found"))
    assert (failure.outcome, failure.scope) == (Outcome.CONFIG, scope)


@pytest.mark.parametrize("status", [403, 404, 400])
def test_a_location_out_of_reach_takes_only_its_zone(status: int) -> None:
    text = "Location us-east9-a is not found or access is unauthorized."
    failure = classify(answer.http(status, {"error": {"code": status, "message": text}}))
    assert (failure.outcome, failure.scope) == (Outcome.PERMISSION, Scope.ZONE)


def test_what_no_rule_knows_is_unknown_and_keeps_its_body() -> None:
    failure = operation_with(("BRAND_NEW", "a failure of tomorrow"))
    assert failure.outcome is Outcome.UNKNOWN
    assert "a failure of tomorrow" in failure.body


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "errors", "code", "message", "reason", "details", "errorDetails", "quotaInfo"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(status=st.integers(400, 599), body=documents)
def test_any_http_answer_is_judged(status: int, body: Any) -> None:
    failure = classify(answer.http(status, json.dumps(body)))
    assert failure.code
    assert len(failure.body) <= answer.BODY_LIMIT
    assert failure.outcome not in (Outcome.GRANTED, Outcome.SKIPPED)


@given(body=st.dictionaries(st.sampled_from(["error", "targetLink", "httpErrorStatusCode"]), documents))
def test_any_operation_is_judged(body: dict[str, Any]) -> None:
    failure = classify(answer.operation(body))
    assert failure.code
    assert failure.outcome_known
