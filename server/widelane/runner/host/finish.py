"""The end of a dispatch: what finished.json says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .attempt import Record
from .board import MERGE, OVER, SETUP, Board
from .state import State

NOTHING: Record = {
    "total": 0,
    "succeeded": 0,
    "failed": 0,
    "cached": 0,
    "realized_width": 0,
    "merge": None,
    "gpu_seconds_busy": 0.0,
    "gpu_seconds_held": 0.0,
}
"""The counts of a host that ran nothing."""


def finished_key(lease: str) -> str:
    """Where a lease's finished.json is."""
    return f"leases/{lease}/finished.json"


@dataclass(frozen=True)
class End:
    """State and reason of finished.json."""

    state: str
    reason: str = ""


def ending(board: Board, state: State, cancelling: bool) -> Optional[End]:
    """How a dispatch of which nothing runs has ended; None when there is something left to start."""
    setup, merge = board.get(SETUP), board.get(MERGE)
    left = board.count() - board.count(*OVER)
    merged = merge is None or merge.state == "succeeded"
    if not left and not board.count("failed") and merged:
        return End("succeeded")
    if cancelling:
        return End("cancelled", "asked to stop")
    if setup is not None and setup.state == "failed":
        return End("env_broken", _note(state, SETUP))
    if not left and board.count("failed"):
        return End("failed", f"unit {board.first_failed}: {_note(state, board.first_failed)}")
    if merge is not None and merge.state == "failed":
        return End("failed", f"merge: {_note(state, MERGE)}")
    return None


def summary(board: Board, state: State, width: int) -> Record:
    """The counts of finished.json."""
    merge = board.get(MERGE)
    return {
        "total": board.count(),
        "succeeded": board.count("succeeded"),
        "failed": board.count("failed"),
        "cached": board.cached,
        "realized_width": width,
        "merge": merge.state if merge is not None and merge.state in OVER else None,
        "gpu_seconds_busy": round(state.busy_seconds(), 3),
    }


def _note(state: State, name: str) -> str:
    return str(state.meta(f"note:{name}") or "")
