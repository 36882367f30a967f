"""The base of every noun, and the ids."""

from __future__ import annotations

from typing import NewType

from pydantic import BaseModel, ConfigDict

RunId = NewType("RunId", str)
DispatchId = NewType("DispatchId", str)
AttemptId = NewType("AttemptId", str)
UnitDigest = NewType("UnitDigest", str)


class Frozen(BaseModel):
    """Immutable, and unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
