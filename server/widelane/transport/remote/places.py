"""Paths on a host."""

from __future__ import annotations

from pathlib import Path


def place(path: str) -> Path:
    """A path on this host: absolute, from `~`, or else relative to the home folder."""
    return Path("~").expanduser() / Path(path).expanduser()
