"""The timeline of a run: each event with its time, the time since the start, and both widths."""

from __future__ import annotations

from typing import Any

from widelane.ledger import events as ev
from widelane.models.attempt import Outcome, Scope
from widelane.models.dispatch import DispatchState, RunEvent, RunStatus
from widelane.models.verdict import PlanVerdict, Rung
from widelane.reports.paper import Paper
from widelane.reports.timeline import timeline_report


def report(paper: Paper, verdict: PlanVerdict, rungs: tuple[Rung, ...], *more: tuple[str, Any]) -> list[str]:
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
    start = "2026-03-01T12:00:00+00:00"
    told = [(start, requested), (start, ev.PhaseStarted(units=20)), (start, ev.WalkStarted(number=1, ladder=rungs))]
    events = [
        RunEvent(seq=seq, at=at, kind=event.kind, dispatch_id="d-1", body=event.model_dump(mode="json"))
        for seq, (at, event) in enumerate((*told, *more), 1)
    ]
    status = RunStatus(run_id="r1", state=DispatchState.RUNNING, plan_digest="p", started_at=start, phases=())
    return timeline_report(status, events, paper).splitlines()


def test_a_miss_has_its_time_the_time_since_the_start_and_both_widths(
    paper: Paper, verdict: PlanVerdict, rungs: tuple[Rung, ...]
) -> None:
    intended = ev.AttemptIntended(
        attempt_id="a1",
        walk=1,
        rung=1,
        zone="us-central1-a",
        name="wl-a1",
        request_id="0",
        fence_seconds=600,
        wait_seconds=0,
        sent_at="",
        deadline="",
        spec_key="s",
    )
    failed = ev.AttemptFailed(
        attempt_id="a1",
        outcome=Outcome.CAPACITY,
        scope=Scope.ZONE,
        code="STOCKOUT",
        message="",
        requested_width=8,
        width=4,
    )
    at = "2026-03-01T13:02:03.5+00:00"
    lines = report(paper, verdict, rungs, (at, intended), (at, failed))
    assert lines[0] == "r1  running"
    assert lines[-1] == (
        "  2026-03-01 13:02:03Z   +1:02:03  missed  a2-ultragpu-4g FLEX_START us-central1-a: capacity (STOCKOUT)"
        "  [asked 8, got 0]"
    )


def test_idle_gpus_and_a_suspected_hang_are_told_in_words_and_their_first_notes_are_not(
    paper: Paper, verdict: PlanVerdict, rungs: tuple[Rung, ...]
) -> None:
    base: dict[str, Any] = {"attempt_id": "a1", "since": "", "requested_width": 8, "realized_width": 8}
    idle = [ev.GpusIdle(level=level, idle=6, minutes=31.2, stage="merging", **base) for level in ("noted", "advisory")]
    quiet = [ev.WorkQuiet(level=level, running=2, minutes=70, **base) for level in ("noted", "suspected")]
    lines = report(paper, verdict, rungs, *[("2026-03-01T12:31:00+00:00", event) for event in (*idle, *quiet)])
    assert [line.partition("+0:31:00  ")[2] for line in lines[-2:]] == [
        "idle    capture: 6 of 8 GPUs have had nothing to run for 31 min (merging)  [asked 8, got 8]",
        "quiet   capture: no unit has begun or ended for 70 min, 2 running: it may hang  [asked 8, got 8]",
    ]
    assert sum("12:31:00Z" in line for line in lines) == 2


def test_a_time_that_is_none_is_shown_as_it_is(paper: Paper, verdict: PlanVerdict, rungs: tuple[Rung, ...]) -> None:
    lines = report(paper, verdict, rungs, ("soon", ev.RunEnded(state="failed")))
    assert "soon" in lines[-1]
