"""Follows a lease until the host says its last word or the machine is lost."""

from __future__ import annotations

from datetime import datetime, timedelta

from widelane.dispatcher.case import Case, Passing
from widelane.lanes.protocol import Lane, Machine, MachineState
from widelane.ledger import AttemptState
from widelane.ledger.events import LeaseFinished, LeaseLost, WidthRealized
from widelane.models.attempt import Outcome
from widelane.store import read_finished, read_host

_FENCE_SLACK = 0.98
"""The service may end a machine a little before its fence."""


def follow(case: Case, lane: Lane, attempt: AttemptState) -> None:
    """Record what the host reports, and how the lease ended."""
    attempt_id = attempt.intended.attempt_id
    while True:
        case.refresh()
        attempt = case.run.attempt(attempt_id) or attempt
        if case.run.cancelled:
            _lost(case, attempt, Outcome.CANCELLED, "cancelled", "cancelled")
            return
        try:
            ended = _look(case, lane, attempt)
        except Passing as error:
            case.trouble(error, lane)
            continue
        if ended:
            return
        case.wait(lane)


def _look(case: Case, lane: Lane, attempt: AttemptState) -> bool:
    """One look at host and machine; whether the lease ended."""
    # The machine is asked before the store: a machine that is gone has written everything it ever will.
    machine = lane.find(attempt.intended.name, attempt.intended.zone)
    if attempt.realized is None:
        _count(case, attempt)
        attempt = case.run.attempt(attempt.intended.attempt_id) or attempt
    if _finished(case, attempt):
        return True
    if machine is None or machine.state in (MachineState.STOPPING, MachineState.STOPPED):
        return _gone(case, lane, attempt, machine)
    return _unfit(case, lane, attempt)


def _count(case: Case, attempt: AttemptState) -> None:
    host = read_host(case.store, attempt.intended.attempt_id)
    if host is None:
        return
    case.record(
        WidthRealized(
            attempt_id=attempt.intended.attempt_id,
            realized_width=host.count,
            expected_width=attempt.rung.width,
            devices=tuple(gpu.uuid for gpu in host.gpus),
        )
    )


def _finished(case: Case, attempt: AttemptState) -> bool:
    finished = read_finished(case.store, attempt.intended.attempt_id)
    # Nobody here cancelled, so the host was told to shut down: the lane says why once the machine is gone.
    if finished is None or finished.state == "cancelled":
        return False
    case.record(
        LeaseFinished(
            attempt_id=attempt.intended.attempt_id,
            state=finished.state,
            reason=finished.reason,
            total=finished.total,
            succeeded=finished.succeeded,
            failed=finished.failed,
            gpu_seconds_busy=finished.gpu_seconds_busy,
            gpu_seconds_held=finished.gpu_seconds_held,
        )
    )
    return True


def _gone(case: Case, lane: Lane, attempt: AttemptState, machine: Machine | None) -> bool:
    """Say why a machine went away without a last word; a machine that is only stopping is looked at again."""
    if machine is not None and machine.state is MachineState.STOPPING:
        return False
    if machine is not None and machine.end is not None:
        _lost(case, attempt, machine.end.outcome, machine.end.code, machine.end.hint or machine.end.message)
        return True
    if lane.preempted(attempt.intended.name, attempt.intended.zone):
        _lost(case, attempt, Outcome.PREEMPTED, "preempted", "the service took the machine back")
        return True
    fence = timedelta(seconds=attempt.intended.fence_seconds * _FENCE_SLACK)
    if lane.clock.now() - datetime.fromisoformat(attempt.intended.sent_at) >= fence:
        message = f"the machine reached its run limit of {attempt.intended.fence_seconds} s with units left"
        _lost(case, attempt, Outcome.WORKLOAD, "fence_expired", message)
        return True
    _lost(case, attempt, Outcome.UNKNOWN, "machine_lost", "the machine is gone and its host said nothing")
    return True


def _unfit(case: Case, lane: Lane, attempt: AttemptState) -> bool:
    """Whether the machine is no use: too few devices, or a host that never speaks."""
    realized, selected = attempt.realized, attempt.selected
    least = case.phase.requested.min_width
    if realized is not None and realized.realized_width < min(least, attempt.rung.width):
        message = f"the host counted {realized.realized_width} devices, at least {least} are needed"
        _lost(case, attempt, Outcome.CONFIG, "too_few_devices", message)
        return True
    if realized is None and selected is not None and lane.clock.now() >= datetime.fromisoformat(selected.report_by):
        _lost(case, attempt, Outcome.UNKNOWN, "boot_silent", "the machine runs, but its host never reported")
        return True
    return False


def _lost(case: Case, attempt: AttemptState, outcome: Outcome, code: str, message: str) -> None:
    case.record(
        LeaseLost(
            attempt_id=attempt.intended.attempt_id,
            outcome=outcome,
            code=code,
            message=message,
            worked=attempt.realized is not None,
        )
    )
