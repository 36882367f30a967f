"""What a provider's answer is, and what a walk does about it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import ConfigDict, Field

from widelane.models.attempt import Outcome, Scope
from widelane.models.base import Frozen


class Action(StrEnum):
    """What the walk does next."""

    NEXT_ZONE = "next_zone"
    NEXT_REGION = "next_region"
    NEXT_RUNG = "next_rung"
    NEXT_LANE = "next_lane"
    SKIP_METRIC = "skip_metric"
    REPEAT = "repeat"
    LOOK_BY_NAME = "look_by_name"
    WAIT = "wait"
    WALK_AGAIN = "walk_again"
    STOP = "stop"
    NONE = "none"


class ErrorExplanation(Frozen):
    """`class` and `scope` as the lane's classifier has them, `action` as the walk would have it, `reason` in words."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    outcome: Outcome = Field(serialization_alias="class")
    scope: Scope
    action: Action
    reason: str
    lane: str
    code: str
    message: str
    hint: str = ""
    may_have_happened: bool = False
    """The call may have taken effect although it failed: it is looked for before anything is sent again."""
    metric: str | None = None
    zones: tuple[str, ...] = ()
    """Zones that the answer names as having stock."""
