"""Follows a lease until the host says its last word or the machine is lost."""

from __future__ import annotations

from datetime import datetime, timedelta

from widelane.dispatcher.assignment import Assignment
from widelane.dispatcher.case import Case, Passing
from widelane.dispatcher.watch import Sample, Watch, WatchRules
from widelane.lanes.protocol import Lane, Machine, MachineState
from widelane.ledger import AttemptState
from widelane.ledger.events import LeaseFinished, LeaseLost, WidthRealized
from widelane.models.attempt import Outcome
from widelane.store import read_finished, read_host, read_progress

FENCE_EXPIRED = "fence_expired"
"""Code of a lease whose machine reached its run limit."""
_BETWEEN_SAMPLES = timedelta(seconds=20)
_FENCE_SLACK = 0.98
"""The service may end a machine a little before its fence."""


class Following:
    """One lease, from its grant to its end."""

    def __init__(self, case: Case, lane: Lane, attempt: AttemptState, work: Assignment) -> None:
        self._case = case
        self._lane = lane
        self._id = attempt.intended.attempt_id
        self._watch = watch_of(case, work, attempt)
        self._next = lane.clock.now()

    def run(self) -> None:
        """Record what the host reports, and how the lease ended."""
        case = self._case
        while True:
            case.refresh()
            if case.run.cancelled:
                _lost(case, self._attempt, Outcome.CANCELLED, "cancelled", "cancelled")
                return
            try:
                ended = self._look()
            except Passing as error:
                case.trouble(error, self._lane)
                continue
            if ended:
                return
            case.wait(self._lane)

    @property
    def _attempt(self) -> AttemptState:
        return self._case.run.by_id[self._id]

    def _look(self) -> bool:
        """One look at host and machine; whether the lease ended."""
        case, lane, attempt = self._case, self._lane, self._attempt
        # The machine is asked before the store: a machine that is gone has written everything it ever will.
        machine = lane.find(attempt.intended.name, attempt.intended.zone)
        if attempt.realized is None:
            _count(case, attempt)
        if _finished(case, attempt):
            return True
        if machine is None or machine.state in (MachineState.STOPPING, MachineState.STOPPED):
            return _gone(case, lane, attempt, machine)
        if _unfit(case, lane, attempt):
            return True
        self._look_after()
        return False

    def _look_after(self) -> None:
        """Say when the machine is held for nothing. It is only said."""
        now, realized = self._lane.clock.now(), self._attempt.realized
        if realized is None or now < self._next:
            return
        self._next = now + _BETWEEN_SAMPLES
        progress = read_progress(self._case.store, self._id)
        if progress is None:
            return
        sample = Sample(
            held=realized.realized_width,
            running=progress.running,
            over=progress.succeeded + progress.failed,
            gpus=progress.gpus,
            stage=progress.state,
        )
        for event in self._watch.look(now, sample):
            self._case.record(event)


def watch_of(case: Case, work: Assignment, attempt: AttemptState) -> Watch:
    """The watch over a lease, with the policy's times; it goes on from what the journal has."""
    policy, verdict = work.policy, case.phase.requested.verdict
    longest = timedelta(hours=verdict.economics.longest_unit_hours if verdict.economics is not None else 0.0)
    rules = WatchRules(
        idle_gpus=policy.idle_gpus,
        advisory=timedelta(minutes=policy.idle_advisory_minutes),
        loud=timedelta(minutes=policy.idle_loud_minutes),
        quiet=max(timedelta(minutes=policy.hang_minutes), longest * policy.hang_unit_ratio),
        gap=timedelta(minutes=policy.hang_gap_minutes),
    )
    requested = case.phase.requested.requested_width
    return Watch(rules, attempt.intended.attempt_id, requested, attempt.idle, attempt.quiet)


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
            requested_width=case.phase.requested.requested_width,
            realized_width=_realized(attempt),
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
        _lost(case, attempt, Outcome.WORKLOAD, FENCE_EXPIRED, message)
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
            requested_width=case.phase.requested.requested_width,
            realized_width=_realized(attempt),
        )
    )


def _realized(attempt: AttemptState) -> int:
    return attempt.realized.realized_width if attempt.realized is not None else 0
