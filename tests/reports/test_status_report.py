from __future__ import annotations

from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState, RunStatus
from widelane.models.plan import Accept
from widelane.reports.paper import Paper
from widelane.reports.status import attempt_line, progress_lines, runs_report, status_report, summary_report

WHOLE = """\
r-77  running
  capture  running  width 4 of 8 asked  gcp a2-ultragpu-4g FLEX_START us-central1-a
    missed   a2-ultragpu-8g FLEX_START us-central1-a: capacity (ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS)
    skipped  a3-highgpu-8g FLEX_START: quota
    granted  a2-ultragpu-4g FLEX_START us-central1-a
    [##########..........] 10/20 units, 4 running, 1 failed
      GPU 0  5 units  at unit 11
      GPU 1  5 units
  report  queued  no GPU
"""


def test_a_status_shows_every_attempt_and_what_each_gpu_did(run: RunStatus, paper: Paper) -> None:
    assert status_report(run, paper) == WHOLE


def test_an_accepted_finding_is_shown_in_every_status(run: RunStatus, paper: Paper) -> None:
    accept = Accept(code="too_wide", phase="capture", reason="the demo")
    text = status_report(run.model_copy(update={"accepted": (accept,)}), paper)
    assert "  accepted too_wide of capture: the demo\n" in text


def test_a_machine_that_a_cancel_let_go_is_no_miss(run: RunStatus, paper: Paper) -> None:
    last = run.phases[0].attempts[-1].model_copy(update={"outcome": Outcome.CANCELLED, "code": "cancelled"})
    assert attempt_line(last, paper) == "let go   a2-ultragpu-4g FLEX_START us-central1-a: cancelled"


def test_runs_are_listed_one_a_line(run: RunStatus, paper: Paper) -> None:
    assert runs_report([run], paper).splitlines() == [
        "run   state    started               task  phases",
        "r-77  running  2026-03-01 12:00:00Z  1121  capture running, report queued",
    ]


def test_no_runs_are_said_so(paper: Paper) -> None:
    assert runs_report([], paper) == "no runs\n"


def test_progress_shows_only_what_is_under_way(run: RunStatus, paper: Paper) -> None:
    assert progress_lines(run, paper) == [
        "capture  running  width 4 of 8 asked",
        "  [##########..........] 10/20 units, 4 running, 1 failed",
        "    GPU 0  5 units  at unit 11",
        "    GPU 1  5 units",
    ]


def test_a_summary_says_why_a_phase_went_wrong_and_what_to_do(run: RunStatus, paper: Paper) -> None:
    failed = run.phases[0].model_copy(
        update={"state": DispatchState.FAILED, "reason": "1 unit failed", "hint": "see its log"}
    )
    text = summary_report(run.model_copy(update={"state": DispatchState.FAILED, "phases": (failed,)}), paper)
    assert text.splitlines() == [
        "run r-77  failed",
        "  phase    state   width               machine                                      units",
        "  capture  failed  width 4 of 8 asked  gcp a2-ultragpu-4g FLEX_START us-central1-a  9/20 units",
        "  capture: 1 unit failed",
        "    fix: see its log",
    ]
