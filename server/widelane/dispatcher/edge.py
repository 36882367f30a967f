"""What the dispatcher needs of the world, so that a test can give it another."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from widelane.lanes.protocol import Lane
from widelane.ledger.events import RunRequested

OpenLane = Callable[[str, RunRequested], Lane]
"""Opens the lane of that name with the settings of a run's request."""


def new_run_id(now: datetime) -> str:
    """A short id that sorts by day and is legal in names and labels everywhere."""
    return f"r{now:%m%d}-{secrets.token_hex(4)}"


RUN_FOLDERS = f"**/r{'[0-9]' * 4}-{'[0-9a-f]' * 8}"
"""A glob for the folders that `pull` makes when none is named: they bear the run's id."""


def new_request_id() -> str:
    """A UUID, as the create call wants it."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Edge:
    """Effects that are not the journal, the store or a lane's own. `pause` takes real seconds."""

    open_lane: OpenLane
    pause: Callable[[float], None] = time.sleep
    request_id: Callable[[], str] = new_request_id
