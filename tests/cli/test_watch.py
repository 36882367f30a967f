"""Following a run, from a scripted journal."""

from __future__ import annotations

import io

import pytest

from widelane.cli.live import LiveView
from widelane.cli.stay import Detached, stay
from widelane.cli.watch import Plain, follow
from widelane.ledger import events as ev
from widelane.models.dispatch import DispatchState, GpuProgress, PhaseStatus, RunEvent, RunStatus, UnitCounts
from widelane.reports.paper import Paper


def status(done: int, state: DispatchState, last_seq: int) -> RunStatus:
    phase = PhaseStatus(
        name="capture",
        dispatch_id="d-1",
        state=state,
        requested_width=8,
        realized_width=4,
        units=UnitCounts(total=20, succeeded=done, running=1),
        gpus=(GpuProgress(gpu="0", done=done),),
    )
    return RunStatus(run_id="r-1", state=state, plan_digest="1a", started_at="", phases=(phase,), last_seq=last_seq)


ENDED = RunEvent(seq=3, at="", kind="run_ended", dispatch_id=None, body=ev.RunEnded(state="succeeded").model_dump())
STARTED = RunEvent(seq=1, at="", kind="phase_started", dispatch_id="d-1", body=ev.PhaseStarted(units=20).model_dump())


class Scripted:
    """Answers as a client does, one step of the script a wait; then as if Ctrl-C was pressed."""

    def __init__(self, *steps: tuple[RunStatus, tuple[RunEvent, ...]]) -> None:
        self._steps = list(steps)
        self._events: list[RunEvent] = []
        self.asked_after: list[int] = []

    def wait(self, run_id: str, seconds: float, after_seq: int = 0) -> RunStatus:
        self.asked_after.append(after_seq)
        if not self._steps:
            raise KeyboardInterrupt
        found, events = self._steps.pop(0)
        self._events += events
        return found

    def events(self, run_id: str, after_seq: int = 0) -> tuple[RunEvent, ...]:
        return tuple(event for event in self._events if event.seq > after_seq)


def test_each_event_is_one_line_and_each_quarter_of_the_units_another() -> None:
    runs = Scripted(
        (status(0, DispatchState.RUNNING, 1), (STARTED,)),
        (status(4, DispatchState.RUNNING, 1), ()),
        (status(11, DispatchState.RUNNING, 1), ()),
        (status(12, DispatchState.RUNNING, 1), ()),
        (status(20, DispatchState.SUCCEEDED, 3), (ENDED,)),
    )
    stream = io.StringIO()
    end = follow(runs, "r-1", Plain(stream, Paper()))
    assert end.state is DispatchState.SUCCEEDED
    assert stream.getvalue().splitlines() == [
        "phase   d-1: 20 units",
        "units   capture 11/20  per GPU 0:11",
        "run     succeeded",
    ]
    assert runs.asked_after == [0, 1, 1, 1, 1]


def test_a_timeout_returns_the_run_as_it_stands() -> None:
    runs = Scripted((status(0, DispatchState.RUNNING, 1), ()))
    assert follow(runs, "r-1", Plain(io.StringIO(), Paper()), timeout=0).state is DispatchState.RUNNING


def test_the_live_view_lets_events_scroll_by_and_leaves_no_progress_behind() -> None:
    runs = Scripted(
        (status(5, DispatchState.RUNNING, 1), (STARTED,)),
        (status(20, DispatchState.SUCCEEDED, 3), (ENDED,)),
    )
    stream = io.StringIO()
    with LiveView(stream, Paper(colour=True)) as view:
        follow(runs, "r-1", view)
    lines = stream.getvalue().splitlines()
    assert "phase   d-1: 20 units" in lines
    assert "run     succeeded" in lines


def test_ctrl_c_says_that_the_run_goes_on_and_how_to_cancel_it(capsys: pytest.CaptureFixture[str]) -> None:
    runs = Scripted((status(0, DispatchState.RUNNING, 1), (STARTED,)))
    with pytest.raises(Detached):
        stay(runs, "r-1", quiet_stdout=False)
    written = capsys.readouterr()
    assert written.out == "phase   d-1: 20 units\n"
    assert written.err.splitlines() == [
        "detached: run r-1 goes on",
        "  look:   widelane status r-1, or widelane wait r-1",
        "  cancel: widelane cancel r-1",
    ]


def test_beside_json_the_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    runs = Scripted((status(20, DispatchState.SUCCEEDED, 3), (STARTED, ENDED)))
    stay(runs, "r-1", quiet_stdout=True)
    written = capsys.readouterr()
    assert written.out == ""
    assert "run     succeeded" in written.err
