"""What the checks of ssh hosts and of login hosts share."""

from __future__ import annotations

import time
from typing import Any

from widelane.errors import ConfigError, LaneAuthError, LaneError
from widelane.lanes.checkup.sheet import Sheet
from widelane.transport import HereLine, Host, Program, Request

SURVEY = Program(
    (
        "widelane.transport.remote.places",
        "widelane.runner.host.devices",
        "widelane.lanes.checkup.far.survey",
    )
)
SECONDS = 45.0
"""In which nothing moves; a host that is reached answers at once."""
_LEAST_FREE_GIB = 5.0
_GIB = float(2**30)


def look(sheet: Sheet, host: Host, root: str, *, gpus: bool) -> dict[str, Any] | None:
    """Reach the host and write down what holds of any; None when it can't be reached."""
    before = time.time()
    try:
        told = host.call(Request(SURVEY, "survey", {"root": root, "gpus": gpus}), SECONDS)
    except LaneAuthError as error:
        sheet.fail("login", error.message, error.hint)
        return None
    except (LaneError, ConfigError) as error:
        sheet.fail("reach", error.message, error.hint or f"try `ssh {host.target}`; is it on, and is the network up?")
        return None
    after = time.time()
    sheet.ok("reach", f"{told['host']} answers, Python {told['python']}")
    if host.target != HereLine.target:
        # Its clock was read at some moment between both, so that a slow line alone is no difference.
        apart = max(0.0, before - told["now"]) or min(0.0, after - told["now"])
        sheet.clock(apart, host.target)
    _folder(sheet, told["folder"])
    return told


def _folder(sheet: Sheet, folder: dict[str, Any]) -> None:
    free = folder["free"] / _GIB
    if not folder["usable"]:
        sheet.fail("folder", f"{folder['above']} can't be written to", f"set workdir in [lanes.{sheet.lane}]")
    elif free < _LEAST_FREE_GIB:
        sheet.warn("folder", f"{folder['path']}: {free:.1f} GiB are free", "free some space, or set another workdir")
    else:
        made = "is there" if folder["there"] else "will be made"
        sheet.ok("folder", f"{folder['path']} {made}, {free:.0f} GiB are free")
