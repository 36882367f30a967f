"""Checks of one lane, by name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from widelane.config import Settings
from widelane.lanes.checkup.examine import examine
from widelane.models.checkup import SetupCheck

Checks = dict[str, SetupCheck]
Examined = Callable[..., Checks]


@pytest.fixture
def examined() -> Examined:
    """`examined("gcp", settings)["quotas"]`."""

    def look(lane: str, settings: Settings, **env: str) -> Checks:
        return {check.name: check for check in examine(lane, settings, os.environ | env)}

    return look


@pytest.fixture
def pictured() -> Callable[..., dict[str, tuple[float, str]]]:
    """Everything below some folders: when it was changed, and what is in it."""

    def take(*folders: Path) -> dict[str, tuple[float, str]]:
        found: dict[str, tuple[float, str]] = {}
        for folder in folders:
            for path in [folder, *sorted(folder.rglob("*"))]:
                data = path.read_bytes() if path.is_file() else b""
                found[str(path)] = (path.lstat().st_mtime_ns, hashlib.sha256(data).hexdigest())
        return found

    return take
