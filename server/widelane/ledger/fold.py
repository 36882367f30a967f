"""A run's state, folded from its events. Nothing else holds state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from widelane.ledger import events as ev
from widelane.ledger.journal import Recorded
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState
from widelane.models.verdict import Rung


@dataclass(slots=True)
class AttemptState:
    """One create and the machine that came of it."""

    intended: ev.AttemptIntended
    rung: Rung
    started_at: str
    ended_at: str | None = None
    operation: str | None = None
    queued: bool = False
    hint: str = ""
    """What a queued create waits for."""
    failed: ev.AttemptFailed | None = None
    selected: ev.BackendSelected | None = None
    realized: ev.WidthRealized | None = None
    finished: ev.LeaseFinished | None = None
    lost: ev.LeaseLost | None = None
    released: bool = False
    idle: ev.GpusIdle | None = None
    """Since when several of its GPUs have had nothing to run; None when they have."""
    quiet: ev.WorkQuiet | None = None
    """Since when its host has reported no unit begun or ended; None when it has."""

    @property
    def open(self) -> bool:
        """Whether a machine of it may exist."""
        return self.failed is None and not self.released

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it is under way."""
        if self.lost is not None:
            return self.lost.outcome
        if self.selected is not None:
            return Outcome.GRANTED
        return self.failed.outcome if self.failed is not None else None


@dataclass(slots=True)
class WalkState:
    """One walk over a frozen ladder."""

    started: ev.WalkStarted
    started_at: str
    skipped: dict[int, ev.RungSkipped] = field(default_factory=dict[int, ev.RungSkipped])
    attempts: list[AttemptState] = field(default_factory=list[AttemptState])


@dataclass(slots=True)
class PhaseState:
    """One dispatch."""

    requested: ev.RequestedPhase
    started: ev.PhaseStarted | None = None
    walks: list[WalkState] = field(default_factory=list[WalkState])
    trouble: ev.Trouble | None = None
    """What doesn't answer just now; any later event of the phase clears it."""
    ended: ev.PhaseEnded | None = None

    @property
    def attempts(self) -> list[AttemptState]:
        """Every attempt, oldest first."""
        return [attempt for walk in self.walks for attempt in walk.attempts]

    @property
    def open_attempt(self) -> AttemptState | None:
        """The attempt that may still have a machine; there is at most one."""
        last = self.attempts[-1] if self.attempts else None
        return last if last is not None and last.open else None

    @property
    def state(self) -> DispatchState:
        """Where the dispatch stands."""
        if self.ended is not None:
            return DispatchState(self.ended.state)
        if self.started is None:
            return DispatchState.QUEUED
        attempt = self.open_attempt
        if attempt is None:
            return DispatchState.WALKING
        if attempt.finished is not None or attempt.lost is not None:
            return DispatchState.RELEASING
        if attempt.selected is not None:
            return DispatchState.RUNNING
        return DispatchState.WAITING if attempt.queued else DispatchState.WALKING


@dataclass(slots=True)
class RunState:
    """A run as its events tell it."""

    run_id: str
    requested: ev.RunRequested
    requested_at: str
    phases: dict[str, PhaseState]
    """By dispatch id, in plan order."""
    by_id: dict[str, AttemptState] = field(default_factory=dict[str, AttemptState])
    """Every attempt."""
    cancelled: bool = False
    ended: ev.RunEnded | None = None
    ended_at: str | None = None
    last_seq: int = 0

    def phase_named(self, name: str) -> PhaseState | None:
        """The dispatch of a phase; None when the run doesn't include it."""
        return next((phase for phase in self.phases.values() if phase.requested.name == name), None)

    def attempt(self, attempt_id: str) -> AttemptState | None:
        """An attempt by its id."""
        return self.by_id.get(attempt_id)


def fold(recorded: Iterable[Recorded], state: RunState | None = None) -> RunState:
    """The state after these events of one run, which begin with its `run_requested` or follow those of `state`.

    A given state is carried on, not copied.

    Raises:
        ValueError: there is no beginning.
    """
    for record in recorded:
        if isinstance(record.event, ev.RunRequested):
            state = _begin(record, record.event)
        elif state is None:
            raise ValueError(f"event {record.seq} of {record.run_id} comes before run_requested")
        else:
            _APPLY[record.event.kind](state, record, record.event)
        state.last_seq = record.seq
    if state is None:
        raise ValueError("no events")
    return state


def _begin(record: Recorded, event: ev.RunRequested) -> RunState:
    phases = {phase.dispatch_id: PhaseState(phase) for phase in event.phases}
    return RunState(record.run_id, event, record.at, phases)


def _cancel(state: RunState, _record: Recorded, _event: Any) -> None:
    state.cancelled = True


def _phase(state: RunState, record: Recorded) -> PhaseState:
    phase = state.phases[record.dispatch_id or ""]
    phase.trouble = None
    return phase


def _phase_started(state: RunState, record: Recorded, event: ev.PhaseStarted) -> None:
    _phase(state, record).started = event


def _walk_started(state: RunState, record: Recorded, event: ev.WalkStarted) -> None:
    _phase(state, record).walks.append(WalkState(event, record.at))


def _rung_skipped(state: RunState, record: Recorded, event: ev.RungSkipped) -> None:
    _phase(state, record).walks[-1].skipped[event.rung] = event


def _intended(state: RunState, record: Recorded, event: ev.AttemptIntended) -> None:
    walk = _phase(state, record).walks[-1]
    attempt = AttemptState(event, walk.started.ladder[event.rung], record.at)
    walk.attempts.append(attempt)
    state.by_id[event.attempt_id] = attempt


def _of(state: RunState, record: Recorded, attempt_id: str) -> AttemptState:
    _phase(state, record)
    return state.by_id[attempt_id]


def _accepted(state: RunState, record: Recorded, event: ev.AttemptAccepted) -> None:
    attempt = _of(state, record, event.attempt_id)
    attempt.operation = event.operation
    attempt.queued = event.queued
    attempt.hint = event.hint


def _failed(state: RunState, record: Recorded, event: ev.AttemptFailed) -> None:
    attempt = _of(state, record, event.attempt_id)
    attempt.failed = event
    attempt.ended_at = record.at


def _selected(state: RunState, record: Recorded, event: ev.BackendSelected) -> None:
    _of(state, record, event.attempt_id).selected = event


def _realized(state: RunState, record: Recorded, event: ev.WidthRealized) -> None:
    _of(state, record, event.attempt_id).realized = event


def _finished(state: RunState, record: Recorded, event: ev.LeaseFinished) -> None:
    _of(state, record, event.attempt_id).finished = event


def _lost(state: RunState, record: Recorded, event: ev.LeaseLost) -> None:
    _of(state, record, event.attempt_id).lost = event


def _released(state: RunState, record: Recorded, event: ev.Released) -> None:
    attempt = _of(state, record, event.attempt_id)
    attempt.released = True
    attempt.ended_at = record.at


def _idle(state: RunState, record: Recorded, event: ev.GpusIdle) -> None:
    _of(state, record, event.attempt_id).idle = None if event.level == "over" else event


def _quiet(state: RunState, record: Recorded, event: ev.WorkQuiet) -> None:
    _of(state, record, event.attempt_id).quiet = None if event.level == "over" else event


def _trouble(state: RunState, record: Recorded, event: ev.Trouble) -> None:
    _phase(state, record).trouble = event


def _phase_ended(state: RunState, record: Recorded, event: ev.PhaseEnded) -> None:
    _phase(state, record).ended = event


def _run_ended(state: RunState, record: Recorded, event: ev.RunEnded) -> None:
    state.ended = event
    state.ended_at = record.at


def _nothing(_state: RunState, _record: Recorded, _event: Any) -> None:
    """Told for the record only."""


_APPLY: dict[str, Callable[[RunState, Recorded, Any], None]] = {
    "cancel_requested": _cancel,
    "release_requested": _cancel,
    "phase_started": _phase_started,
    "walk_started": _walk_started,
    "rung_skipped": _rung_skipped,
    "attempt_intended": _intended,
    "attempt_accepted": _accepted,
    "attempt_failed": _failed,
    "backend_selected": _selected,
    "width_realized": _realized,
    "lease_finished": _finished,
    "lease_lost": _lost,
    "released": _released,
    "gpus_idle": _idle,
    "work_quiet": _quiet,
    "trouble": _trouble,
    "phase_ended": _phase_ended,
    "run_ended": _run_ended,
    "notified": _nothing,
    "machine_reaped": _nothing,
}
