"""Brings one intended create to an end: a machine that runs, or nothing left of it.

Restartable at any point: what it knows is in the journal, and what it doubts it asks the lane by name.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from widelane.dispatcher.case import Case, Passing
from widelane.dispatcher.letting_go import make_gone
from widelane.errors import LaneAuthError
from widelane.lanes.protocol import Granted, Lane, Machine, MachineState, Pending, Progress
from widelane.ledger import AttemptState
from widelane.ledger.events import AttemptAccepted, AttemptFailed, BackendSelected
from widelane.models.attempt import Failure, Outcome, Scope

_FIRST_REPORT_SECONDS = 900
"""How long a machine may run before its host has counted its devices; drivers load in the first minutes."""


def create(case: Case, lane: Lane, attempt: AttemptState, *, fresh: bool) -> None:
    """Record how the attempt's create ended. `fresh`: it was never sent, so there is nothing to look for first."""
    progress: Progress | None = None if fresh else _look(case, lane, attempt)
    while True:
        case.refresh()
        if case.run.cancelled:
            progress = Failure(outcome=Outcome.CANCELLED, scope=Scope.LANE, code="cancelled", message="cancelled")
        elif progress is None:
            try:
                progress = _ask(case, lane, attempt)
            except LaneAuthError as error:
                if fresh:
                    _never_sent(case, attempt, error)
                    return
                case.trouble(error, lane)
            except Passing as error:
                case.trouble(error, lane)
            fresh = False
        if isinstance(progress, Granted):
            _selected(case, lane, attempt, progress.machine)
            return
        if isinstance(progress, Failure) and progress.outcome_known:
            _failed(case, lane, attempt, progress)
            return
        if isinstance(progress, Pending) and (attempt.operation, attempt.queued) != (progress.operation, progress.queued):
            case.record(
                AttemptAccepted(
                    attempt_id=attempt.intended.attempt_id, operation=progress.operation, queued=progress.queued
                )
            )
            attempt = _again(case, attempt)
        overdue = lane.clock.now() >= datetime.fromisoformat(attempt.intended.deadline)
        if overdue and isinstance(progress, Pending):
            _failed(case, lane, attempt, _expired(attempt))
            return
        case.wait(lane)
        progress = None


def _again(case: Case, attempt: AttemptState) -> AttemptState:
    """The attempt as it stands after a new event was folded in."""
    return case.run.attempt(attempt.intended.attempt_id) or attempt


def _look(case: Case, lane: Lane, attempt: AttemptState) -> Progress | None:
    """What a create that may have been sent left behind; None: nothing that the lane or the store shows."""
    while True:
        try:
            finished = case.store.read_finished(attempt.intended.attempt_id)
            machine = lane.find(attempt.intended.name, attempt.intended.zone)
            break
        except Passing as error:
            case.trouble(error, lane)
    if machine is not None:
        return _from_machine(attempt, machine)
    if finished is not None:
        return Granted(_gone_machine(attempt))
    return None


def _gone_machine(attempt: AttemptState) -> Machine:
    """A machine that did its work and deleted itself before anybody here looked."""
    rung = attempt.rung
    return Machine(
        name=attempt.intended.name,
        zone=attempt.intended.zone,
        id="",
        state=MachineState.STOPPED,
        machine_type=rung.machine_type,
        provisioning_model=rung.provisioning_model,
        attempt_id=attempt.intended.attempt_id,
        labels={},
    )


def _from_machine(attempt: AttemptState, machine: Machine) -> Progress | None:
    if machine.attempt_id != attempt.intended.attempt_id:
        return Failure(
            outcome=Outcome.CONFLICT,
            scope=Scope.INSTANCE,
            code="name_taken",
            message=f"{machine.name} exists and isn't of this attempt",
        )
    if machine.state is MachineState.RUNNING:
        return Granted(machine)
    if machine.state in (MachineState.QUEUED, MachineState.STARTING) and attempt.operation is None:
        return Pending(operation="", queued=machine.state is MachineState.QUEUED)
    return None


def _ask(case: Case, lane: Lane, attempt: AttemptState) -> Progress | None:
    """One question to the lane: the create, sent with the same request id each time, or how it stands."""
    launch = case.launch(attempt)
    if attempt.operation:
        return lane.poll(launch, attempt.operation)
    progress = lane.create(launch)
    if isinstance(progress, Failure) and not progress.outcome_known:
        machine = lane.find(launch.name, launch.zone)
        return progress if machine is None else _from_machine(attempt, machine)
    return progress


def _selected(case: Case, lane: Lane, attempt: AttemptState, machine: Machine) -> None:
    rung, intended = attempt.rung, attempt.intended
    if (machine.machine_type, machine.provisioning_model) != (rung.machine_type, rung.provisioning_model):
        got = f"{machine.machine_type} {machine.provisioning_model}"
        message = f"asked for {rung.machine_type} {rung.provisioning_model}, the service made {got}"
        _failed(
            case,
            lane,
            attempt,
            Failure(outcome=Outcome.CONFIG, scope=Scope.RUNG, code="realized_mismatch", message=message),
        )
        return
    walk = case.phase.walks[-1]
    requested = case.phase.requested.requested_width
    degraded = rung.width < requested
    case.record(
        BackendSelected(
            attempt_id=intended.attempt_id,
            requested_width=requested,
            realized_width=rung.width,
            degraded=degraded,
            lane=rung.lane,
            machine_type=machine.machine_type,
            provisioning_model=machine.provisioning_model,
            zone=machine.zone,
            reason="degraded: wider rungs had no machine" if degraded else "granted",
            evidence=tuple(a.intended.attempt_id for a in walk.attempts if a.failed is not None),
            report_by=(lane.clock.now() + timedelta(seconds=_FIRST_REPORT_SECONDS)).isoformat(),
        )
    )


def _never_sent(case: Case, attempt: AttemptState, error: LaneAuthError) -> None:
    """The first create had no credentials to go with: there is nothing to clean up, and nobody to ask."""
    case.record(
        AttemptFailed(
            attempt_id=attempt.intended.attempt_id,
            outcome=Outcome.PERMISSION,
            scope=Scope.PROJECT,
            code=error.code,
            message=error.message,
            hint=error.hint,
        )
    )


def _failed(case: Case, lane: Lane, attempt: AttemptState, failure: Failure) -> None:
    """Make sure that nothing of the attempt is left, and only then say that it failed."""
    make_gone(case, lane, attempt)
    case.record(
        AttemptFailed(
            attempt_id=attempt.intended.attempt_id,
            outcome=failure.outcome,
            scope=failure.scope,
            code=failure.code,
            message=failure.message,
            body=failure.body,
            metric=failure.metric,
            zones_hint=failure.zones_hint,
            hint=failure.hint,
        )
    )


def _expired(attempt: AttemptState) -> Failure:
    if attempt.queued:
        message = f"queued for {attempt.intended.wait_seconds} s without a machine"
        return Failure(outcome=Outcome.QUEUE_EXPIRED, scope=Scope.RUNG, code="queue_expired", message=message)
    return Failure(
        outcome=Outcome.TRANSIENT, scope=Scope.ZONE, code="start_timeout", message="the create was never decided"
    )
