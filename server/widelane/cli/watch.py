"""Follows a run to its end: its journal as lines, its units as progress."""

from __future__ import annotations

import time
from typing import Protocol, TextIO

from widelane.models.dispatch import DispatchState, RunEvent, RunStatus
from widelane.reports.clean import clean_line
from widelane.reports.narrate import Narrator
from widelane.reports.paper import Paper

_STEP_SECONDS = 0.5
_QUARTERS = 4


class Followed(Protocol):
    """What following a run needs of the dispatcher's client."""

    def wait(self, run_id: str, seconds: float, after_seq: int = 0) -> RunStatus:
        """Block until there is an event after `after_seq`, the run ends, or `seconds` are over."""
        ...

    def events(self, run_id: str, after_seq: int = 0) -> tuple[RunEvent, ...]:
        """The run's journal after `after_seq`."""
        ...


class Sink(Protocol):
    """Where a followed run is shown."""

    def event(self, event: RunEvent) -> None:
        """Something happened; called once an event, oldest first."""
        ...

    def status(self, status: RunStatus) -> None:
        """How the run stands now; called at least every half second."""
        ...


def follow(runs: Followed, run_id: str, sink: Sink, timeout: float | None = None) -> RunStatus:
    """Show a run until it ends or `timeout` seconds are over; how it stands then."""
    until = None if timeout is None else time.monotonic() + timeout
    seq = 0
    while True:
        step = _STEP_SECONDS if until is None else max(0.0, min(_STEP_SECONDS, until - time.monotonic()))
        status = runs.wait(run_id, step, after_seq=seq)
        for event in runs.events(run_id, seq):
            sink.event(event)
            seq = event.seq
        sink.status(status)
        if not status.state.live or (until is not None and time.monotonic() >= until):
            return status


class Plain:
    """One line an event, and one each time another quarter of a phase's units is done."""

    def __init__(self, stream: TextIO, paper: Paper) -> None:
        self._stream = stream
        self._narrator = Narrator(paper)
        self._quarters: dict[str, int] = {}

    def event(self, event: RunEvent) -> None:
        """Write the event's line."""
        self._write(self._narrator.lines(event))

    def status(self, status: RunStatus) -> None:
        """Write a line for each phase that passed another quarter."""
        for phase in status.phases:
            units = phase.units
            done = units.succeeded + units.failed
            if phase.state is not DispatchState.RUNNING or not units.total:
                continue
            quarter = _QUARTERS * done // units.total
            if quarter > self._quarters.get(phase.dispatch_id, 0):
                self._quarters[phase.dispatch_id] = quarter
                per_gpu = "".join(f" {clean_line(gpu.gpu)}:{gpu.done}" for gpu in phase.gpus)
                share = f"  per GPU{per_gpu}" if per_gpu else ""
                self._write([f"units   {clean_line(phase.name)} {done}/{units.total}{share}"])

    def _write(self, lines: list[str]) -> None:
        if lines:
            self._stream.write("\n".join(lines) + "\n")
            self._stream.flush()
