"""Where things of a home stand."""

from __future__ import annotations

from pathlib import Path


def journal_path(home: Path) -> Path:
    """The journal."""
    return home / "ledger.db"


def lock_path(home: Path) -> Path:
    """The supervisor's lock; it holds the pid of the holder."""
    return home / "supervisor.lock"


def log_path(home: Path) -> Path:
    """What supervisors wrote to standard error."""
    return home / "supervisor.log"


def default_store(home: Path) -> Path:
    """The store of runs that name none."""
    return home / "store"
