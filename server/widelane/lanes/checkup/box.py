"""The checks of a host with GPUs that is reached by ssh."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from widelane.config import Settings
from widelane.lanes.checkup.hosts import look
from widelane.lanes.checkup.sheet import Sheet
from widelane.transport import Host, PassingLine


def examine(sheet: Sheet, settings: Settings, place: str, _env: Mapping[str, str]) -> None:
    """Reach it, and see whether it has what the section says."""
    box = settings.ssh[place]
    config = Path(box.ssh_config).expanduser() if box.ssh_config else None
    line = PassingLine(sheet.lane, box.host, settings.home, config=config, python=box.python or "python3")
    told = look(sheet, Host(sheet.lane, line), box.workdir or "~/.widelane", gpus=True)
    if told is None:
        return
    if not told["proc"]:
        sheet.fail("system", "it has no /proc", "a machine there must run Linux")
    if told["gpus"] < box.gpus:
        why = f": {told['trouble']}" if told["trouble"] else ""
        sheet.fail("gpus", f"{told['gpus']} of the {box.gpus} configured{why}", f"set gpus in [lanes.{sheet.lane}]")
    elif told["gpus"] > box.gpus:
        message = f"it has {told['gpus']}, of which {box.gpus} are used"
        sheet.warn("gpus", message, f"set gpus = {told['gpus']} in [lanes.{sheet.lane}]")
    else:
        sheet.ok("gpus", f"{told['gpus']}")
