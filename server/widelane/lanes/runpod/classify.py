"""One classifier for every failure of RunPod: an answer in, its class and scope out.

What is a zone elsewhere is a GPU type here: each has machines of its own. The rules are tried in order. Only REST v2
has statuses worth the name, and even there a stock-out is a 400 with a sentence: the sentences come before the
statuses that they share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from widelane.lanes.runpod.answer import Answer, Api
from widelane.models.attempt import Failure, Outcome, Scope

_MESSAGE_LIMIT = 500
_NO_STOCK = (
    "no longer any instances available",
    "not enough free gpus",
    "no instances currently available",
    "does not have the resources to deploy",
)
_NO_MONEY = ("insufficient balance", "insufficient funds", "not enough funds", "account balance", "spend limit")
_NO_LOGIN = ("unauthorized", "unauthenticated", "invalid api key", "no api key")
_BAD_QUERY = frozenset({"GRAPHQL_PARSE_FAILED", "GRAPHQL_VALIDATION_FAILED", "BAD_USER_INPUT"})
_NEVER_SENT = frozenset({"ConnectError", "ConnectTimeout", "UnsupportedProtocol", "InvalidURL"})
_UNKNOWN_GPU = "no gpu found with the specified id"

_HINTS = {
    Outcome.PERMISSION: "check the key in the variable that key_env of [lanes.runpod] names",
    Outcome.QUOTA: "add credit at RunPod, or take [lanes.runpod] out",
}


@dataclass(frozen=True, slots=True)
class _Ruling:
    outcome: Outcome
    scope: Scope
    known: bool = True


_Rule = Callable[[Answer], _Ruling | None]


def classify(answer: Answer) -> Failure:
    """Say what a failed answer is. Never raises; an answer that no rule knows is `unknown`.

    With `outcome_known` False a pod may have been made although the call failed.
    """
    ruling = next(
        (ruling for rule in _RULES if (ruling := rule(answer)) is not None),
        _Ruling(Outcome.UNKNOWN, Scope.RUNG),
    )
    return Failure(
        outcome=ruling.outcome,
        scope=ruling.scope,
        code=answer.code,
        message=(answer.text or answer.code)[:_MESSAGE_LIMIT],
        body=answer.body,
        outcome_known=ruling.known,
        metric="balance" if ruling.outcome is Outcome.QUOTA else None,
        hint=_HINTS.get(ruling.outcome, ""),
    )


_LOST = _Ruling(Outcome.TRANSIENT, Scope.INSTANCE, known=False)


def _capacity(answer: Answer) -> _Ruling | None:
    return _Ruling(Outcome.CAPACITY, Scope.ZONE) if _says(answer, _NO_STOCK) else None


def _balance(answer: Answer) -> _Ruling | None:
    refused = answer.status == 402 or (not _broken(answer) and _says(answer, _NO_MONEY))
    return _Ruling(Outcome.QUOTA, Scope.LANE) if refused else None


def _permission(answer: Answer) -> _Ruling | None:
    """403 is about this pool of machines; 401 about who we are."""
    if answer.status == 403:
        return _Ruling(Outcome.PERMISSION, Scope.ZONE)
    named = answer.status == 401 or answer.code in ("AuthenticationError", "UNAUTHENTICATED", "FORBIDDEN")
    refused = named or (not _broken(answer) and _says(answer, _NO_LOGIN))
    return _Ruling(Outcome.PERMISSION, Scope.LANE) if refused else None


def _rate(answer: Answer) -> _Ruling | None:
    return _Ruling(Outcome.TRANSIENT, Scope.LANE) if answer.status == 429 else None


def _unsent(answer: Answer) -> _Ruling | None:
    return _Ruling(Outcome.TRANSIENT, Scope.LANE) if answer.code in _NEVER_SENT else None


def _unknown_gpu(answer: Answer) -> _Ruling | None:
    """The package asks for the type before it sends anything."""
    return _Ruling(Outcome.CONFIG, Scope.ZONE) if _UNKNOWN_GPU in answer.text.lower() else None


def _lost(answer: Answer) -> _Ruling | None:
    """The service may have acted although no usable answer came; of a young pod it may not know yet."""
    if answer.api is Api.NONE or not answer.parsed:
        return _LOST
    if answer.status in (404, 408) or _broken(answer):
        return _LOST
    went_wrong = answer.code in ("NO_DATA", "INTERNAL_SERVER_ERROR") or "something went wrong" in answer.text.lower()
    return _LOST if went_wrong else None


def _conflict(answer: Answer) -> _Ruling | None:
    return _Ruling(Outcome.CONFLICT, Scope.INSTANCE) if answer.status == 409 else None


def _config(answer: Answer) -> _Ruling | None:
    """A body that breaks a rule breaks it for every type; a 400 may be about this type alone."""
    if answer.status == 422 or answer.code in _BAD_QUERY:
        return _Ruling(Outcome.CONFIG, Scope.LANE)
    return _Ruling(Outcome.CONFIG, Scope.ZONE) if answer.status == 400 else None


_RULES: tuple[_Rule, ...] = (
    _rate,
    _capacity,
    _balance,
    _permission,
    _unsent,
    _unknown_gpu,
    _lost,
    _conflict,
    _config,
)


def _broken(answer: Answer) -> bool:
    return answer.status is not None and answer.status >= 500


def _says(answer: Answer, sentences: tuple[str, ...]) -> bool:
    text = answer.text.lower()
    return any(sentence in text for sentence in sentences)
