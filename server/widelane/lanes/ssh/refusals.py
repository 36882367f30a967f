"""Why a host doesn't give a machine, in the classes of the walk."""

from __future__ import annotations

from typing import Any

from widelane.errors import WidelaneError
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.transport import UnfitError


def no_room(host: str, wanted: int, refused: dict[str, Any]) -> Failure:
    """Too few GPUs: others have them (a narrower rung may still fit), or the host has no more than that."""
    total, free, holders = int(refused["total"]), int(refused["free"]), list(refused["holders"])
    if total < wanted:
        has = str(refused["trouble"]) or f"it has {total}"
        return Failure(
            outcome=Outcome.CONFIG,
            scope=Scope.RUNG,
            code="too_few_gpus",
            message=f"{wanted} GPUs are wanted of {host}: {has}",
            hint="set `gpus` of its section to what `nvidia-smi -L` lists there",
        )
    return Failure(
        outcome=Outcome.CAPACITY,
        scope=Scope.RUNG if free else Scope.LANE,
        code="gpus_busy",
        message=f"{free} of the {total} GPUs of {host} are free, {wanted} are wanted; held by {', '.join(holders)}",
    )


def taken_name(name: str, attempt_id: str) -> Failure:
    """Another attempt has the name."""
    return Failure(
        outcome=Outcome.CONFLICT,
        scope=Scope.INSTANCE,
        code="NAME_TAKEN",
        message=f"{name} belongs to attempt {attempt_id}",
    )


def unfit(error: UnfitError) -> Failure:
    """No waiting helps."""
    return Failure(outcome=Outcome.CONFIG, scope=Scope.LANE, code=error.code, message=error.message, hint=error.hint)


def not_started(error: WidelaneError) -> Failure:
    """The host, or our store, said that it can't."""
    return Failure(
        outcome=Outcome.CONFIG,
        scope=Scope.LANE,
        code="NOT_STARTED",
        message=f"the runner could not be started: {error.message}",
        body=f"{type(error).__name__}: {error}"[:4000],
        hint=error.hint,
    )


def why_ended(ended: dict[str, Any] | None) -> Failure | None:
    """What the keeper wrote when it left; None when the runner came to its own end, or nobody could write."""
    why = "" if ended is None else str(ended["why"])
    if why.startswith("fence"):
        message = "the machine reached its run limit with units left"
        return Failure(outcome=Outcome.WORKLOAD, scope=Scope.INSTANCE, code="fence_expired", message=message)
    if why.startswith("the runner failed"):
        message = f"{why}; its log is with the machine's folder on the host"
        return Failure(outcome=Outcome.UNKNOWN, scope=Scope.INSTANCE, code="runner_failed", message=message)
    return None
