"""The append-only journal of a home, and the state folded from it."""

from widelane.ledger.events import Event, parse_event
from widelane.ledger.fold import AttemptState, PhaseState, RunState, WalkState, fold
from widelane.ledger.journal import Journal, Recorded

__all__ = [
    "AttemptState",
    "Event",
    "Journal",
    "PhaseState",
    "Recorded",
    "RunState",
    "WalkState",
    "fold",
    "parse_event",
]
