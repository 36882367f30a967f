"""One classifier for every failure of Compute Engine: an answer in, its class and scope out.

The rules are tried in order and the order matters: a quota refusal carries HTTP 403, a rate limit says
"Quota exceeded", a stock-out carries HTTP 503, and a configuration mistake can carry a capacity code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from widelane.lanes.gcp.answer import Answer, Kind
from widelane.models.attempt import Failure, Outcome, Scope

_QUOTA = frozenset({"QUOTA_EXCEEDED", "quotaExceeded"})
_RATE = frozenset(
    {"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED", "RESOURCE_OPERATION_RATE_EXCEEDED"}
)
_RETRIED = frozenset({"RESOURCE_NOT_READY", "resourceNotReady", "INTERNAL_ERROR", "internalError", "backendError"})
_INCOMPATIBLE = ("features are not compatible", "not compatible with machine type architecture")
_NO_STOCK_CODES = ("RESOURCE_POOL_EXHAUSTED", "STOCKOUT", "insufficientCapacity", "INSUFFICIENT_CAPACITY", "PREEMPTED")
_NO_STOCK_TEXTS = ("does not have enough resources available", "state:STOCKOUT")
_ZONE_TEXTS = ("does not exist in zone", "not supported in locations")
_ZONE_PATH = re.compile(r"/zones/[^/']+/(acceleratorTypes|machineTypes|diskTypes)/")
_OPERATION_PATH = re.compile(r"/operations/[^/']+' was not found")
_LOCATION = re.compile(r"Location \S+ is not found or access is unauthorized")
_METRIC = re.compile(r"Quota '([A-Za-z0-9_]+)' exceeded")
_CAN_BE_MISSING = re.compile(r"/(images|networks|subnetworks|machineTypes|acceleratorTypes|diskTypes|zones)/")
_MESSAGE_LIMIT = 500

_HINTS = (
    ("accessNotConfigured", "enable the Compute Engine API: gcloud services enable compute.googleapis.com"),
    ("authError", "log in again: gcloud auth application-default login"),
    ("insufficientPermissions", "the credentials lack the cloud-platform scope: gcloud auth application-default login"),
    ("vmExternalIpAccess", "set external_address = false in [lanes.gcp]"),
    ("/images/", "set image in [lanes.gcp] to one that exists"),
    ("/networks/", "set network in [lanes.gcp] to one that exists"),
    ("/subnetworks/", "set subnetwork in [lanes.gcp] to one that exists in the region"),
)


@dataclass(frozen=True, slots=True)
class _Ruling:
    outcome: Outcome
    scope: Scope
    known: bool = True


_Rule = Callable[[Answer], _Ruling | None]


def classify(answer: Answer) -> Failure:
    """Say what a failed answer is. Never raises; an answer that no rule knows is `unknown`."""
    answer = answer.without("VM_MIN_COUNT_NOT_REACHED")
    ruling = _rule(answer)
    item = next((item for item in answer.items if _rule(answer.only(item)).outcome is ruling.outcome), answer.items[0])
    return Failure(
        outcome=ruling.outcome,
        scope=ruling.scope,
        code=item.code,
        message=item.message[:_MESSAGE_LIMIT],
        body=answer.body,
        outcome_known=ruling.known,
        zones_hint=answer.zones,
        metric=_metric(answer) if ruling.outcome is Outcome.QUOTA else None,
        hint=_hint(answer),
    )


def _rule(answer: Answer) -> _Ruling:
    """The first rule that applies decides."""
    return next(
        (ruling for rule in _RULES if (ruling := rule(answer)) is not None), _Ruling(Outcome.UNKNOWN, Scope.RUNG)
    )


def _lost(answer: Answer) -> _Ruling | None:
    """The service may have acted although no usable answer came."""
    lost = _Ruling(Outcome.TRANSIENT, Scope.INSTANCE, known=False)
    if answer.kind is Kind.OPERATION:
        return None
    if answer.kind is Kind.TRANSPORT or not answer.parsed:
        return lost
    if answer.status == 404 and _OPERATION_PATH.search(answer.text):
        return lost
    server_error = answer.status is not None and (answer.status >= 500 or answer.status == 408)
    return lost if server_error and not _says_no_stock(answer) else None


def _incompatible(answer: Answer) -> _Ruling | None:
    found = any(text in answer.text for text in _INCOMPATIBLE)
    return _Ruling(Outcome.CONFIG, Scope.RUNG) if found else None


def _quota(answer: Answer) -> _Ruling | None:
    if not answer.reasons & _QUOTA:
        return None
    whole_project = "GPUS_ALL_REGIONS" in answer.text or "globally" in answer.text
    return _Ruling(Outcome.QUOTA, Scope.PROJECT if whole_project else Scope.REGION)


def _rate(answer: Answer) -> _Ruling | None:
    if answer.status != 429 and not answer.reasons & _RATE:
        return None
    one_zone = "RESOURCE_OPERATION_RATE_EXCEEDED" in answer.reasons
    return _Ruling(Outcome.TRANSIENT, Scope.ZONE if one_zone else Scope.PROJECT)


def _capacity(answer: Answer) -> _Ruling | None:
    if not _says_no_stock(answer):
        return None
    whole_region = any("REGION_RESOURCE_POOL" in reason for reason in answer.reasons)
    return _Ruling(Outcome.CAPACITY, Scope.REGION if whole_region else Scope.ZONE)


def _conflict(answer: Answer) -> _Ruling | None:
    codes = {"RESOURCE_ALREADY_EXISTS", "alreadyExists"}
    found = answer.status == 409 or bool(answer.reasons & codes)
    return _Ruling(Outcome.CONFLICT, Scope.INSTANCE) if found else None


def _cancelled(answer: Answer) -> _Ruling | None:
    """Somebody deleted the instance while it was being made."""
    found = any("OPERATION_CANCEL" in reason for reason in answer.reasons)
    return _Ruling(Outcome.TRANSIENT, Scope.INSTANCE) if found else None


def _missing(answer: Answer) -> _Ruling | None:
    """A thing named in the body isn't there. An insert that can't find its own instance lost it to the stock."""
    if not answer.reasons & {"RESOURCE_NOT_FOUND", "notFound"} and answer.status != 404:
        return None
    if _LOCATION.search(answer.text):
        return None
    own = answer.target.partition("/projects/")[2]
    if answer.kind is Kind.OPERATION and own and own in answer.text:
        return _Ruling(Outcome.CAPACITY, Scope.ZONE)
    if _ZONE_PATH.search(answer.text):
        return _Ruling(Outcome.CONFIG, Scope.ZONE)
    return _Ruling(Outcome.CONFIG, Scope.LANE if _CAN_BE_MISSING.search(answer.text) else Scope.RUNG)


def _retried(answer: Answer) -> _Ruling | None:
    if not answer.reasons & _RETRIED:
        return None
    not_ready = bool(answer.reasons & {"RESOURCE_NOT_READY", "resourceNotReady"})
    return _Ruling(Outcome.TRANSIENT, Scope.INSTANCE if not_ready else Scope.ZONE)


def _config(answer: Answer) -> _Ruling | None:
    if _LOCATION.search(answer.text):
        return None
    policy = bool(answer.reasons & {"CONDITION_NOT_MET", "conditionNotMet"}) or answer.status == 412
    invalid = answer.status == 400 or any(reason.startswith("INVALID_") for reason in answer.reasons)
    if policy:
        return _Ruling(Outcome.CONFIG, Scope.PROJECT)
    if invalid:
        one_zone = any(text in answer.text for text in _ZONE_TEXTS)
        return _Ruling(Outcome.CONFIG, Scope.ZONE if one_zone else Scope.RUNG)
    return None


def _permission(answer: Answer) -> _Ruling | None:
    if _LOCATION.search(answer.text):
        return _Ruling(Outcome.PERMISSION, Scope.ZONE)
    codes = {"PERMISSIONS_ERROR", "accessNotConfigured", "SERVICE_DISABLED"}
    found = answer.status in (401, 403) or bool(answer.reasons & codes)
    return _Ruling(Outcome.PERMISSION, Scope.PROJECT) if found else None


_RULES: tuple[_Rule, ...] = (
    _lost,
    _incompatible,
    _quota,
    _rate,
    _capacity,
    _conflict,
    _cancelled,
    _missing,
    _retried,
    _config,
    _permission,
)


def _says_no_stock(answer: Answer) -> bool:
    if any(code in reason for reason in answer.reasons for code in _NO_STOCK_CODES):
        return True
    if "UNSUPPORTED_OPERATION" in answer.reasons and "preemption" in answer.text:
        return True
    return "resource_availability" in answer.reasons or any(text in answer.text for text in _NO_STOCK_TEXTS)


def _metric(answer: Answer) -> str | None:
    named = _METRIC.search(answer.text)
    return named.group(1) if named else answer.metric


def _hint(answer: Answer) -> str:
    words = answer.reasons | {answer.text}
    return next((hint for key, hint in _HINTS if any(key in word for word in words)), "")
