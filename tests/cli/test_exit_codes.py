from __future__ import annotations

import click
import pytest

from widelane import errors
from widelane.cli import exit_codes
from widelane.models.dispatch import DispatchState
from widelane.models.quota import Admits, QuotaReport, RungQuota
from widelane.models.verdict import Verdict

FAILURES = {
    errors.PlanError(()): 2,
    errors.TableError("policy.csv", 3, "width", "not a number"): 2,
    errors.ConfigError("no"): 2,
    errors.ScenarioError("no"): 2,
    errors.StalePlanError("no"): 2,
    errors.NotFoundError("no run"): 2,
    errors.LaneAuthError("gcp", "no credentials"): 2,
    errors.BusyError("held"): 1,
    errors.LaneUnknownError("gcp", "no answer"): 3,
    errors.StoreError("no"): 3,
    errors.LedgerError("no"): 3,
    errors.UnjudgedError("no"): 3,
    click.UsageError("no such option"): 2,
    KeyboardInterrupt(): 130,
    ZeroDivisionError(): 3,
}


@pytest.mark.parametrize(("failure", "code"), FAILURES.items(), ids=lambda value: type(value).__name__)
def test_each_failure_has_its_exit_code(failure: BaseException, code: int) -> None:
    assert exit_codes.of_error(failure) == code


def test_every_error_of_ours_has_a_case_above() -> None:
    def leaves(kind: type[BaseException]) -> set[type[BaseException]]:
        below = kind.__subclasses__()
        return {kind} if not below else set().union(*(leaves(sub) for sub in below))

    ours = {kind for kind in leaves(errors.WidelaneError) if kind.__module__ == "widelane.errors"}
    assert ours <= {type(failure) for failure in FAILURES}


def test_only_what_nobody_raised_on_purpose_is_a_crash() -> None:
    assert exit_codes.is_crash(ZeroDivisionError())
    assert not any(exit_codes.is_crash(failure) for failure in FAILURES if isinstance(failure, errors.WidelaneError))


@pytest.mark.parametrize("state", list(DispatchState))
def test_a_run_that_ended_without_success_is_a_1(state: DispatchState) -> None:
    fine = state.live or state is DispatchState.SUCCEEDED
    assert exit_codes.of_state(state) == (0 if fine else 1)


def test_revise_is_a_1() -> None:
    assert (exit_codes.of_verdict(Verdict.PASS), exit_codes.of_verdict(Verdict.REVISE)) == (0, 1)


@pytest.mark.parametrize(("admits", "code"), [(Admits.YES, 0), (Admits.UNKNOWN, 0), (Admits.NO, 1)])
def test_a_quota_report_is_a_1_only_when_every_rung_is_denied(admits: Admits, code: int) -> None:
    denied = RungQuota.model_validate(
        {"machine_type": "x", "width": 8, "provisioning_model": "SPOT", "admits": "no", "binding": None}
    )
    report = QuotaReport(
        project="p", taken_at="", largest_width=0, rungs=(denied, denied.model_copy(update={"admits": admits}))
    )
    assert exit_codes.of_quota(report) == code
