from __future__ import annotations

import re

from widelane.models.verdict import PlanVerdict
from widelane.reports.findings import check_report
from widelane.reports.paper import Paper
from widelane.reports.plan import plan_report

WHOLE = """\
REVISE  plan.md  1 error
plan digest 1a2b3c

capture  REVISE  width 1, recommended 8  20 units, bound by work
  plan.md:7:5: error needlessly_narrow
      width 8 takes 1.33 h, width 1 takes 8.13 h
      fix: width: 8

  width  wall clock  efficiency  waves  stranded
      1  8 h 08 min         98%     20         -  asked
      8  1 h 20 min         75%      3         -  recommended

  rung  width  lane  machine type    model       quota                                  zones
     1      8  gcp   a2-ultragpu-8g  FLEX_START  no: PREEMPTIBLE_NVIDIA_A100_80GB_GPUS  us-central1-a,c
                                                                                        europe-west4-a
     2      4  gcp   a2-ultragpu-4g  FLEX_START  unknown                                us-central1-a
  long: 8 GPU-hours are more than 2

judge  PASS  no GPU
"""


def test_a_plan_report_says_verdict_findings_widths_and_ladder(verdict: PlanVerdict, paper: Paper) -> None:
    assert plan_report(verdict, "plan.md", paper) == WHOLE


def test_colour_changes_no_text(verdict: PlanVerdict) -> None:
    painted = plan_report(verdict, "plan.md", Paper(columns=100, colour=True))
    assert painted != WHOLE
    assert re.sub(r"\x1b\[\d*m", "", painted) == WHOLE


def test_the_short_answer_is_verdict_and_findings(verdict: PlanVerdict, paper: Paper) -> None:
    assert check_report(verdict, "plan.md", paper).splitlines() == [
        "REVISE  plan.md  1 error",
        "  plan.md:7:5: error needlessly_narrow",
        "      width 8 takes 1.33 h, width 1 takes 8.13 h",
        "      fix: width: 8",
    ]


def test_an_accepted_finding_shows_its_reason_and_counts_apart(verdict: PlanVerdict, paper: Paper) -> None:
    capture = verdict.phases[0]
    accepted = capture.findings[0].model_copy(update={"accepted": "one-off"})
    changed = verdict.model_copy(update={"phases": (capture.model_copy(update={"findings": (accepted,)}),)})
    text = check_report(changed, "plan.md", paper)
    assert "REVISE  plan.md  1 accepted\n" in text
    assert "      accepted: one-off\n" in text


def test_names_from_the_plan_can_not_move_the_terminal(verdict: PlanVerdict, paper: Paper) -> None:
    evil = verdict.phases[1].model_copy(update={"name": "judge\x1b[2J"})
    text = plan_report(verdict.model_copy(update={"phases": (evil,)}), "pl\x1b]0;x\x07an.md", paper)
    assert "\x1b" not in text
    assert "judge  PASS" in text
