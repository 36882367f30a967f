"""What the machines of a lane hold, where no table says so."""

from __future__ import annotations

from widelane.models.base import Frozen


class LaneRoom(Frozen):
    """The largest machine of a lane: its GPUs, and the seconds that it may be held. None: unknown, or without limit."""

    gpus: int | None = None
    seconds: int | None = None
