"""A run's journal as plain lines, one an event. The first word of a line is stable, so that scripts can rely on it.

phase    a phase's turn came               queued   a flex-start request waits for stock
missed   a create came to nothing, why     skipped  a rung was left out, why
granted  a machine runs                    width    devices counted, units spread over them
done     the host finished its units       lost     a machine went away before that
gone     the machine is deleted            ended    a phase is over
run      the run begins or is over         cancel   somebody asked for the end
idle     several GPUs have nothing to run  quiet    no unit begins or ends: perhaps it hangs
told     the notify command was run
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from widelane.ledger import Event, parse_event
from widelane.ledger import events as ev
from widelane.models.dispatch import DispatchState, RunEvent
from widelane.models.verdict import Rung
from widelane.reports.clean import clean_line
from widelane.reports.paper import Paper, Style, plural
from widelane.reports.status import missed_why, rung_words, width_line

_STYLES: dict[str, Style] = {
    "missed": "warn",
    "lost": "warn",
    "idle": "warn",
    "quiet": "bad",
    "granted": "good",
    "skipped": "dim",
    "gone": "dim",
}


class Narrator:
    """Turns events into lines. Feed it every event of a run, oldest first: it remembers ladders and attempts."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._phases: dict[str, ev.RequestedPhase] = {}
        self._units: dict[str, int] = {}
        self._ladders: dict[str, tuple[Rung, ...]] = {}
        self._attempts: dict[str, ev.AttemptIntended] = {}
        self._rungs: dict[str, Rung] = {}
        self._tell: dict[str, Callable[[str, Any], str]] = {
            "run_requested": self._requested,
            "cancel_requested": self._cancel,
            "release_requested": self._cancel,
            "phase_started": self._phase_started,
            "walk_started": self._walk_started,
            "rung_skipped": self._skipped,
            "attempt_intended": self._intended,
            "attempt_accepted": self._accepted,
            "attempt_failed": self._failed,
            "backend_selected": self._selected,
            "width_realized": self._realized,
            "lease_finished": self._finished,
            "lease_lost": self._lost,
            "released": self._released,
            "trouble": self._trouble,
            "gpus_idle": self._idle,
            "work_quiet": self._quiet,
            "notified": self._notified,
            "phase_ended": self._phase_ended,
            "run_ended": self._run_ended,
        }

    def lines(self, event: RunEvent) -> list[str]:
        """The line of an event; none for one that only prepares another, or of a kind that is not known here."""
        tell = self._tell.get(event.kind)
        if tell is None:
            return []
        told = tell(event.dispatch_id or "", _parsed(event))
        if not told:
            return []
        word, _, rest = told.partition(" ")
        style = _STYLES.get(word)
        padded = f"{word:<8}"
        return [f"{self._paper.paint(padded, style) if style else padded}{rest}".rstrip()]

    def _requested(self, _dispatch: str, event: ev.RunRequested) -> str:
        self._phases = {phase.dispatch_id: phase for phase in event.phases}
        return f"run {', '.join(clean_line(phase.name) for phase in event.phases)}"

    def _cancel(self, _dispatch: str, event: ev.CancelRequested | ev.ReleaseRequested) -> str:
        return f"cancel asked for by {clean_line(event.by) or 'somebody'}"

    def _name(self, dispatch: str) -> str:
        phase = self._phases.get(dispatch)
        return clean_line(phase.name) if phase is not None else dispatch

    def _phase_started(self, dispatch: str, event: ev.PhaseStarted) -> str:
        if event.units is None:
            return f"phase {self._name(dispatch)}"
        self._units[dispatch] = event.units
        done = f", {event.already_done} done before" if event.already_done else ""
        return f"phase {self._name(dispatch)}: {plural(event.units, 'unit')}{done}"

    def _walk_started(self, dispatch: str, event: ev.WalkStarted) -> str:
        self._ladders[dispatch] = event.ladder
        return f"walk {event.number} of {self._name(dispatch)}: {event.reason}" if event.number > 1 else ""

    def _skipped(self, dispatch: str, event: ev.RungSkipped) -> str:
        rung = self._ladders[dispatch][event.rung]
        why = f"{event.code} ({clean_line(event.message)})" if event.message else event.code
        return f"skipped {rung_words(rung.machine_type, rung.provisioning_model.value, None)}: {why}"

    def _intended(self, dispatch: str, event: ev.AttemptIntended) -> str:
        self._attempts[event.attempt_id] = event
        self._rungs[event.attempt_id] = self._ladders[dispatch][event.rung]
        return ""

    def _place(self, attempt_id: str) -> str:
        rung = self._rungs[attempt_id]
        zone = self._attempts[attempt_id].zone
        return rung_words(rung.machine_type, rung.provisioning_model.value, zone)

    def _accepted(self, _dispatch: str, event: ev.AttemptAccepted) -> str:
        if not event.queued:
            return ""
        wait = self._attempts[event.attempt_id].wait_seconds
        return f"queued {self._place(event.attempt_id)}: waits up to {wait} s"

    def _failed(self, _dispatch: str, event: ev.AttemptFailed) -> str:
        return f"missed {self._place(event.attempt_id)}: {missed_why(event.outcome, event.code)}"

    def _selected(self, _dispatch: str, event: ev.BackendSelected) -> str:
        return f"granted {rung_words(event.machine_type, event.provisioning_model, event.zone)}"

    def _realized(self, dispatch: str, event: ev.WidthRealized) -> str:
        phase = self._phases.get(dispatch)
        requested = phase.requested_width if phase is not None else event.expected_width
        if not requested:
            return ""
        width = width_line(requested, event.realized_width).removeprefix("width ")
        units = self._units.get(dispatch)
        if units is None:
            return f"width {width}"
        how = "re-sharded" if event.realized_width != requested else "spread"
        return f"width {width}: {plural(units, 'unit')} {how} over {plural(event.realized_width, 'GPU')}"

    def _finished(self, dispatch: str, event: ev.LeaseFinished) -> str:
        failed = f", {event.failed} failed" if event.failed else ""
        why = f" ({clean_line(event.reason)})" if event.reason else ""
        return f"done {self._name(dispatch)}: {event.succeeded} of {plural(event.total, 'unit')}{failed}{why}"

    def _lost(self, _dispatch: str, event: ev.LeaseLost) -> str:
        return f"lost {self._place(event.attempt_id)}: {missed_why(event.outcome, event.code)}"

    def _released(self, _dispatch: str, event: ev.Released) -> str:
        return f"gone {self._place(event.attempt_id)}"

    def _trouble(self, dispatch: str, event: ev.Trouble) -> str:
        why = f" ({clean_line(event.message)})" if event.message else ""
        return f"trouble {self._name(dispatch)}: {event.code}{why}"

    def _idle(self, dispatch: str, event: ev.GpusIdle) -> str:
        if event.level not in ("advisory", "loud"):
            return ""
        return f"idle {self._name(dispatch)}: {event.words}"

    def _quiet(self, dispatch: str, event: ev.WorkQuiet) -> str:
        return f"quiet {self._name(dispatch)}: {event.words}" if event.level == "suspected" else ""

    def _notified(self, _dispatch: str, event: ev.Notified) -> str:
        return "told notify command" if event.ok else f"told notify command, which failed: {clean_line(event.detail)}"

    def _phase_ended(self, dispatch: str, event: ev.PhaseEnded) -> str:
        units = f", {event.succeeded} of {plural(event.total, 'unit')}" if event.total else ""
        why = f": {clean_line(event.reason)}" if event.reason and event.state != DispatchState.SUCCEEDED else ""
        return f"ended {self._name(dispatch)} {event.state}{units}{why}"

    def _run_ended(self, _dispatch: str, event: ev.RunEnded) -> str:
        return f"run {event.state}" + (f": {clean_line(event.note)}" if event.note else "")


def _parsed(event: RunEvent) -> Event:
    return parse_event(json.dumps(event.body | {"kind": event.kind}))
