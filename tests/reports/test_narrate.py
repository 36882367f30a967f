from __future__ import annotations

from typing import Any

import pytest

from widelane.ledger import events as ev
from widelane.models.attempt import Outcome, Scope
from widelane.models.dispatch import RunEvent
from widelane.models.verdict import PlanVerdict, Rung
from widelane.reports.narrate import Narrator
from widelane.reports.paper import Paper

STOCKOUT = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"


def told(events: list[Any], paper: Paper) -> list[str]:
    narrator = Narrator(paper)
    lines: list[str] = []
    for seq, event in enumerate(events, start=1):
        body = event.model_dump(mode="json")
        record = RunEvent(seq=seq, at="2026-03-01T12:00:00Z", kind=event.kind, dispatch_id="d-1", body=body)
        lines += narrator.lines(record)
    return lines


def intended(attempt_id: str, rung: int) -> ev.AttemptIntended:
    return ev.AttemptIntended(
        attempt_id=attempt_id,
        walk=1,
        rung=rung,
        zone="us-central1-a",
        name=attempt_id,
        request_id="0",
        fence_seconds=600,
        wait_seconds=600,
        sent_at="",
        deadline="",
        spec_key="specs/x.json",
    )


@pytest.fixture
def opening(verdict: PlanVerdict, rungs: tuple[Rung, ...]) -> list[Any]:
    asked = verdict.phases[0].model_copy(update={"requested_width": 8})
    phase = ev.RequestedPhase(dispatch_id="d-1", dispatch_key="k", verdict=asked)
    requested = ev.RunRequested(
        run_key="k",
        task=None,
        plan={},
        plan_digest="1a2b3c",
        origin="plan.md",
        phases=(phase,),
        store_url="file:///store",
        runner_sha256="0",
    )
    return [requested, ev.PhaseStarted(units=20), ev.WalkStarted(number=1, ladder=rungs)]


def selected(attempt_id: str) -> ev.BackendSelected:
    return ev.BackendSelected(
        attempt_id=attempt_id,
        requested_width=8,
        realized_width=4,
        degraded=True,
        lane="gcp",
        machine_type="a2-ultragpu-4g",
        provisioning_model="FLEX_START",
        zone="us-central1-a",
        reason="capacity",
    )


def test_a_run_that_degrades_is_told_line_by_line(opening: list[Any], paper: Paper) -> None:
    missed = ev.AttemptFailed(
        attempt_id="a-1", outcome=Outcome.CAPACITY, scope=Scope.ZONE, code=STOCKOUT, message="out of stock"
    )
    events = [
        *opening,
        intended("a-1", 0),
        ev.AttemptAccepted(attempt_id="a-1", operation="op", queued=False),
        missed,
        intended("a-2", 1),
        ev.AttemptAccepted(attempt_id="a-2", operation="op", queued=True),
        selected("a-2"),
        ev.WidthRealized(attempt_id="a-2", realized_width=4, expected_width=4),
        ev.LeaseFinished(attempt_id="a-2", state="succeeded", total=20, succeeded=20),
        ev.Released(attempt_id="a-2"),
        ev.PhaseEnded(state="succeeded", reason="done", total=20, succeeded=20),
        ev.RunEnded(state="succeeded"),
    ]
    assert told(events, paper) == [
        "run     capture",
        "phase   capture: 20 units",
        f"missed  a2-ultragpu-8g FLEX_START us-central1-a: capacity ({STOCKOUT})",
        "queued  a2-ultragpu-4g FLEX_START us-central1-a: waits up to 600 s",
        "granted a2-ultragpu-4g FLEX_START us-central1-a",
        "width   4 of 8 asked: 20 units re-sharded over 4 GPUs",
        "done    capture: 20 of 20 units",
        "gone    a2-ultragpu-4g FLEX_START us-central1-a",
        "ended   capture succeeded, 20 of 20 units",
        "run     succeeded",
    ]


def test_a_skipped_rung_says_which_metric_denied_it(opening: list[Any], paper: Paper) -> None:
    skipped = ev.RungSkipped(walk=1, rung=0, code="quota", message="PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 0 of 4 used")
    assert told([*opening, skipped], paper)[-1] == (
        "skipped a2-ultragpu-8g FLEX_START: quota (PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 0 of 4 used)"
    )


def test_a_lost_machine_and_the_next_walk_are_told(opening: list[Any], rungs: tuple[Rung, ...], paper: Paper) -> None:
    lost = ev.LeaseLost(attempt_id="a-1", outcome=Outcome.PREEMPTED, code="PREEMPTED", message="", worked=True)
    walk = ev.WalkStarted(number=2, ladder=rungs, reason="preempted")
    assert told([*opening, intended("a-1", 1), selected("a-1"), lost, walk], paper)[-2:] == [
        "lost    a2-ultragpu-4g FLEX_START us-central1-a: preempted (PREEMPTED)",
        "walk    2 of capture: preempted",
    ]


def test_a_full_width_is_not_called_re_sharded(opening: list[Any], paper: Paper) -> None:
    realized = ev.WidthRealized(attempt_id="a-1", realized_width=8, expected_width=8)
    assert told([*opening, realized], paper)[-1] == "width   8: 20 units spread over 8 GPUs"


def test_provider_text_can_not_move_the_terminal(opening: list[Any], paper: Paper) -> None:
    ended = ev.RunEnded(state="stopped", note="no\x1b[2J\nway")
    assert told([*opening, ended], paper)[-1] == "run     stopped: no way"


def test_events_of_an_unknown_kind_are_passed_over(paper: Paper) -> None:
    event = RunEvent(seq=1, at="", kind="from_the_future", dispatch_id=None, body={})
    assert Narrator(paper).lines(event) == []
