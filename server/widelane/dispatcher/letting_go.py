"""Lets machines go, and says so only when the service does."""

from __future__ import annotations

from widelane.dispatcher.case import Case, Passing
from widelane.lanes.protocol import Lane
from widelane.ledger import AttemptState
from widelane.ledger.events import Released


def make_gone(case: Case, lane: Lane, attempt: AttemptState) -> None:
    """Return when the service says that there is no machine of this attempt; another's of that name isn't touched.

    It asks for as long as it takes: nothing may follow while a machine may live, and the machine's own fence ends it.
    """
    name, zone = attempt.intended.name, attempt.intended.zone
    while True:
        try:
            machine = lane.find(name, zone)
            if machine is None or machine.attempt_id != attempt.intended.attempt_id:
                return
            lane.delete(name, zone)
            case.wait(lane)
        except Passing as error:
            case.trouble(error, lane)


def release(case: Case, lane: Lane, attempt: AttemptState) -> None:
    """Let go of a lease that finished or was lost."""
    make_gone(case, lane, attempt)
    case.record(Released(attempt_id=attempt.intended.attempt_id))
