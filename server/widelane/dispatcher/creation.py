"""Brings one intended create to an end: a machine that runs, or nothing left of it.

Restartable at any point: what it knows is in the journal, and what it doubts it asks the lane by name.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from widelane.dispatcher.case import Case, Passing
from widelane.dispatcher.letting_go import make_gone
from widelane.dispatcher.walk import evidence
from widelane.errors import LaneAuthError
from widelane.facts import Policy
from widelane.lanes.protocol import Granted, Lane, Machine, MachineState, Pending, Progress
from widelane.ledger import AttemptState, WalkState
from widelane.ledger.events import AttemptAccepted, AttemptFailed, BackendSelected
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.router.ladder import ANY_MACHINE
from widelane.store import read_finished
from widelane.transport import UnreachedError


class Creation:
    """One create, from its intent to its end. `fresh`: it was never sent, so there is nothing to look for first."""

    def __init__(self, case: Case, lane: Lane, attempt: AttemptState, policy: Policy, *, fresh: bool) -> None:
        self._policy = policy
        self._case = case
        self._lane = lane
        self._id = attempt.intended.attempt_id
        self._given = attempt
        self._sent = not fresh

    @property
    def _attempt(self) -> AttemptState:
        """The attempt as the journal has it now."""
        return self._case.run.attempt(self._id) or self._given

    def run(self) -> None:
        """Return when the journal says how the create ended."""
        progress = self._look() if self._sent else self._ask()
        while not self._settled(progress):
            self._case.wait(self._lane)
            self._case.refresh()
            progress = _CANCELLED if self._case.run.cancelled else self._ask()

    def _look(self) -> Progress | None:
        """What a create that may have been sent left behind; None: nothing that the lane or the store shows."""
        attempt = self._attempt
        while True:
            try:
                machine = self._lane.find(attempt.intended.name, attempt.intended.zone)
                if machine is not None:
                    return _from_machine(attempt, machine)
                break
            except Passing as error:
                self._case.trouble(error, self._lane)
        # Absence was asked for first: a machine that is gone has written everything it ever will.
        if self._finished():
            return Granted(_gone_machine(attempt))
        return _expired(attempt) if self._overdue() else None

    def _ask(self) -> Progress | None:
        """One question: the create, sent with the same request id each time, or how it stands. None: no answer."""
        try:
            return self._answer()
        except LaneAuthError as error:
            if not self._sent:
                return _no_credentials(error)
            self._case.trouble(error, self._lane)
        except UnreachedError as error:
            if not self._sent:
                return _unreached(error)
            self._case.trouble(error, self._lane)
        except Passing as error:
            self._case.trouble(error, self._lane)
        self._sent = True
        return None

    def _answer(self) -> Progress | None:
        attempt = self._attempt
        launch = self._case.launch(attempt)
        if attempt.operation:
            return self._lane.poll(launch, attempt.operation)
        progress = self._lane.create(launch)
        self._sent = True
        if isinstance(progress, Failure) and not progress.outcome_known:
            machine = self._lane.find(launch.name, launch.zone)
            return progress if machine is None else _from_machine(attempt, machine)
        return progress

    def _settled(self, progress: Progress | None) -> bool:
        """Write down what the answer settles; whether that is how the create ended."""
        if isinstance(progress, Granted):
            self._selected(progress.machine)
            return True
        if isinstance(progress, Failure) and progress.outcome_known:
            self._failed_unless_done(progress)
            return True
        if isinstance(progress, Pending):
            self._accepted(progress)
            if self._overdue():
                self._failed(_expired(self._attempt))
                return True
        return False

    def _finished(self) -> bool:
        while True:
            try:
                return read_finished(self._case.store, self._id) is not None
            except Passing as error:
                self._case.trouble(error, self._lane)

    def _overdue(self) -> bool:
        return self._lane.clock.now() >= datetime.fromisoformat(self._attempt.intended.deadline)

    def _accepted(self, pending: Pending) -> None:
        attempt = self._attempt
        if (attempt.operation or "", attempt.queued, attempt.hint) != (
            pending.operation,
            pending.queued,
            pending.hint,
        ):
            self._case.record(
                AttemptAccepted(
                    attempt_id=self._id, operation=pending.operation, queued=pending.queued, hint=pending.hint
                )
            )

    def _selected(self, machine: Machine) -> None:
        rung = self._attempt.rung
        asked, made = (rung.machine_type, rung.provisioning_model), (machine.machine_type, machine.provisioning_model)
        if rung.machine_type == ANY_MACHINE:
            asked = (machine.machine_type, rung.provisioning_model)
        if asked != made:
            message = f"asked for {' '.join(asked)}, the service made {' '.join(made)}"
            self._failed(Failure(outcome=Outcome.CONFIG, scope=Scope.RUNG, code="realized_mismatch", message=message))
            return
        requested = self._case.phase.requested.requested_width
        degraded = rung.width < requested
        walk = self._case.phase.walks[-1]
        report_by = self._lane.clock.now() + timedelta(seconds=self._policy.first_report_seconds)
        self._case.record(
            BackendSelected(
                attempt_id=self._id,
                requested_width=requested,
                realized_width=rung.width,
                degraded=degraded,
                lane=rung.lane,
                machine_type=machine.machine_type,
                provisioning_model=machine.provisioning_model,
                zone=machine.zone,
                reason=_reason(walk, degraded=degraded),
                evidence=_evidence(walk, rung.lane),
                report_by=report_by.isoformat(),
                machine_id=machine.id,
            )
        )

    def _failed_unless_done(self, failure: Failure) -> None:
        """A machine that did its work and deleted itself between two questions looks like one that never was."""
        if self._sent and failure is not _CANCELLED and self._finished():
            self._selected(_gone_machine(self._attempt))
        else:
            self._failed(failure)

    def _failed(self, failure: Failure) -> None:
        """Make sure that nothing of the attempt is left, and only then say that it failed."""
        if self._sent:
            make_gone(self._case, self._lane, self._attempt)
        attempt = self._attempt
        self._case.record(
            AttemptFailed(
                attempt_id=self._id,
                lane=attempt.rung.lane,
                machine_type=attempt.rung.machine_type,
                provisioning_model=attempt.rung.provisioning_model.value,
                zone=attempt.intended.zone,
                requested_width=self._case.phase.requested.requested_width,
                width=attempt.rung.width,
                **failure.model_dump(exclude={"outcome_known"}),
            )
        )


def _evidence(walk: WalkState, lane: str) -> tuple[str, ...]:
    """What led here: what shows the lanes before exhausted, quota skips included, and every create that failed.

    For a failover also the attempt whose work failed.
    """
    failed = [attempt.intended.attempt_id for attempt in walk.attempts if attempt.failed is not None]
    first = [walk.started.failover_of] if walk.started.failover_of else []
    return tuple(dict.fromkeys([*first, *(evidence(walk, lane) or ()), *failed]))


def _reason(walk: WalkState, *, degraded: bool) -> str:
    if walk.started.failover_of:
        return f"failover: the work failed in {walk.started.failover_of}"
    return "degraded: wider rungs had no machine" if degraded else "granted"


_CANCELLED = Failure(outcome=Outcome.CANCELLED, scope=Scope.LANE, code="cancelled", message="cancelled")


def _from_machine(attempt: AttemptState, machine: Machine) -> Progress | None:
    if machine.attempt_id != attempt.intended.attempt_id:
        message = f"{machine.name} exists and isn't of this attempt"
        return Failure(outcome=Outcome.CONFLICT, scope=Scope.INSTANCE, code="name_taken", message=message)
    if machine.state is MachineState.RUNNING:
        return Granted(machine)
    if machine.state in (MachineState.QUEUED, MachineState.STARTING) and attempt.operation is None:
        return Pending(operation="", queued=machine.state is MachineState.QUEUED)
    return None


def _gone_machine(attempt: AttemptState) -> Machine:
    """A machine that did its work and deleted itself before anybody here looked."""
    return Machine(
        name=attempt.intended.name,
        zone=attempt.intended.zone,
        id="",
        state=MachineState.STOPPED,
        machine_type=attempt.rung.machine_type,
        provisioning_model=attempt.rung.provisioning_model,
        attempt_id=attempt.intended.attempt_id,
        labels={},
    )


def _no_credentials(error: LaneAuthError) -> Failure:
    return Failure(
        outcome=Outcome.PERMISSION, scope=Scope.PROJECT, code=error.code, message=error.message, hint=error.hint
    )


def _unreached(error: UnreachedError) -> Failure:
    """Nothing was sent, so there is nothing to look for: the walk tries again for as often as it may."""
    return Failure(
        outcome=Outcome.TRANSIENT, scope=Scope.INSTANCE, code=error.code, message=error.message, hint=error.hint
    )


def _expired(attempt: AttemptState) -> Failure:
    if attempt.queued:
        message = f"queued for {attempt.intended.wait_seconds} s without a machine"
        if attempt.hint:
            message += f": {attempt.hint}"
        return Failure(outcome=Outcome.QUEUE_EXPIRED, scope=Scope.RUNG, code="queue_expired", message=message)
    return Failure(
        outcome=Outcome.TRANSIENT, scope=Scope.ZONE, code="start_timeout", message="the create was never decided"
    )
