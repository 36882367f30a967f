"""Which dispatches of a run are due, which can never be, and when the run is over. Pure."""

from __future__ import annotations

from widelane.ledger import PhaseState, RunState
from widelane.ledger.events import PhaseEnded, RunEnded
from widelane.models.dispatch import DispatchState

_WORST_FIRST = (
    DispatchState.CANCELLED,
    DispatchState.FAILED,
    DispatchState.STOPPED,
    DispatchState.ATTEMPT_CAP,
    DispatchState.EXHAUSTED,
    DispatchState.SUCCEEDED,
)


def due(run: RunState, after: dict[str, tuple[str, ...]]) -> list[str]:
    """Dispatches that can work now: begun ones, and those whose `after` phases succeeded.

    `after` gives the phases that a phase waits for, by name.
    """
    return [
        dispatch_id
        for dispatch_id, phase in run.phases.items()
        if phase.ended is None
        and (phase.started is not None or (not run.cancelled and all(_succeeded(p) for p in _needs(run, phase, after))))
    ]


def settled(run: RunState, after: dict[str, tuple[str, ...]]) -> list[tuple[str, PhaseEnded]]:
    """Ends of dispatches that never began and never will."""
    ends: list[tuple[str, PhaseEnded]] = []
    for dispatch_id, phase in run.phases.items():
        if phase.ended is not None or phase.started is not None:
            continue
        failed = [need for need in _needs(run, phase, after) if need.ended is not None and not _succeeded(need)]
        if run.cancelled:
            ends.append((dispatch_id, PhaseEnded(state=DispatchState.CANCELLED.value, reason="cancelled")))
        elif failed:
            hint = f"it waits for {failed[0].requested.name}, which ended {failed[0].state.value}"
            end = PhaseEnded(state=DispatchState.STOPPED.value, reason="dependency_failed", hint=hint)
            ends.append((dispatch_id, end))
    return ends


def run_end(run: RunState) -> RunEnded | None:
    """The run's end, once every dispatch has one."""
    states = {phase.state for phase in run.phases.values()}
    if any(state.live for state in states):
        return None
    worst = next(state for state in _WORST_FIRST if state in states)
    created = any(phase.attempts for phase in run.phases.values())
    note = "" if created or worst is not DispatchState.SUCCEEDED else "every unit had a record; nothing was created"
    return RunEnded(state=worst.value, note=note)


def run_state(run: RunState) -> DispatchState:
    """The run's state: its end, or that of the dispatch that is furthest along."""
    if run.ended is not None:
        return DispatchState(run.ended.state)
    states = [phase.state for phase in run.phases.values()]
    if states and not any(state.live for state in states):
        return DispatchState.RELEASING  # all that is left is to write its end down
    order = (
        DispatchState.RUNNING,
        DispatchState.RELEASING,
        DispatchState.WAITING,
        DispatchState.WALKING,
    )
    return next((state for state in order if state in states), DispatchState.QUEUED)


def _needs(run: RunState, phase: PhaseState, after: dict[str, tuple[str, ...]]) -> list[PhaseState]:
    names = after.get(phase.requested.name, ())
    return [need for name in names if (need := run.phase_named(name)) is not None]


def _succeeded(phase: PhaseState) -> bool:
    return phase.state is DispatchState.SUCCEEDED
