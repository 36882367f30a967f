"""The checks of this machine as a lane."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from widelane.config import Settings
from widelane.lanes.checkup.sheet import Sheet


def examine(sheet: Sheet, _settings: Settings, _place: str, _env: Mapping[str, str]) -> None:
    """What a process here needs; its folder is in the home, which is looked at apart."""
    if Path("/proc/self/stat").exists():
        sheet.ok("system", "processes can be followed")
    else:
        sheet.fail("system", "this machine has no /proc", "the local lane needs Linux")
