"""What Compute Engine answered, brought to one form before it is judged.

A failure arrives as a transport exception, as an HTTP error, or inside an operation that is DONE. All three
become an `Answer`: plain data, so that neither reading nor judging needs the client library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

BODY_LIMIT = 4000


class Kind(StrEnum):
    """Where a failure showed."""

    TRANSPORT = "transport"
    HTTP = "http"
    OPERATION = "operation"


@dataclass(frozen=True, slots=True)
class ErrorItem:
    """One entry of an error list: the code (or reason) with which the service names it, and its text."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A failed answer. `items` are its errors in order; `reasons` every machine-readable word in it."""

    kind: Kind
    status: int | None
    items: tuple[ErrorItem, ...]
    reasons: frozenset[str]
    text: str
    """All messages, one a line."""
    zones: tuple[str, ...]
    metric: str | None
    body: str
    """As it came, bounded."""
    parsed: bool
    """False: the body is not an error of this API (a proxy's page, say)."""
    operation_type: str = ""
    target: str = ""
    """Link of what an operation was to make."""

    def without(self, code: str) -> Answer:
        """The same answer without the items of that code, unless nothing would be left."""
        rest = tuple(item for item in self.items if item.code != code)
        if not rest or len(rest) == len(self.items):
            return self
        return replace(self, items=rest, reasons=self.reasons - {code})

    def only(self, item: ErrorItem) -> Answer:
        """The same answer as if that item were its only error."""
        return replace(self, items=(item,), reasons=frozenset({item.code}), text=item.message)


def transport(exception: str, message: str = "") -> Answer:
    """Nothing came back: `exception` is the class name."""
    name = exception.rpartition(".")[2]
    return Answer(
        kind=Kind.TRANSPORT,
        status=None,
        items=(ErrorItem(name, message or name),),
        reasons=frozenset({name}),
        text=message,
        zones=(),
        metric=None,
        body=f"{name}: {message}"[:BODY_LIMIT] if message else name,
        parsed=False,
    )


def http(status: int, body: str | Mapping[str, object]) -> Answer:
    """An HTTP error with its body, as text or already decoded."""
    document = _decode(body) if isinstance(body, str) else body
    error = _map(document.get("error")) if document is not None else None
    raw = body if isinstance(body, str) else json.dumps(body)
    if error is None:
        item = ErrorItem(f"HTTP_{status}", f"HTTP {status} without an error of this API")
        return Answer(Kind.HTTP, status, (item,), frozenset(), "", (), None, raw[:BODY_LIMIT], parsed=False)
    entries = [entry for entry in map(_map, _list(error.get("errors"))) if entry is not None]
    details = [detail for detail in map(_map, _list(error.get("details"))) if detail is not None]
    return _answer(Kind.HTTP, status, raw, _http_items(status, error, entries), details)


def operation(document: Mapping[str, object]) -> Answer:
    """An operation that is DONE with an error."""
    error = _map(document.get("error")) or {}
    entries = [entry for entry in map(_map, _list(error.get("errors"))) if entry is not None]
    items = tuple(ErrorItem(_text(entry.get("code")) or "NO_CODE", _text(entry.get("message"))) for entry in entries)
    details = [
        detail for entry in entries for detail in map(_map, _list(entry.get("errorDetails"))) if detail is not None
    ]
    status = document.get("httpErrorStatusCode")
    answer = _answer(
        Kind.OPERATION, status if isinstance(status, int) and status else None, json.dumps(document), items, details
    )
    return replace(
        answer,
        operation_type=_text(document.get("operationType")),
        target=_text(document.get("targetLink")),
    )


def _answer(
    kind: Kind,
    status: int | None,
    raw: str,
    items: tuple[ErrorItem, ...],
    details: list[Mapping[str, object]],
) -> Answer:
    infos = [info for info in map(_error_info, details) if info is not None]
    return Answer(
        kind=kind,
        status=status,
        items=items or (ErrorItem(f"HTTP_{status}" if status else "NO_CODE", ""),),
        reasons=frozenset(item.code for item in items) | {_text(info.get("reason")) for info in infos},
        text="\n".join(item.message for item in items),
        zones=tuple(zone for info in infos for zone in _zones(info)),
        metric=next((metric for metric in map(_limit_name, details) if metric), None),
        body=raw[:BODY_LIMIT],
        parsed=True,
    )


def _http_items(status: int, error: Mapping[str, object], entries: list[Mapping[str, object]]) -> tuple[ErrorItem, ...]:
    whole = _text(error.get("message"))
    items = tuple(
        ErrorItem(_text(entry.get("reason")) or f"HTTP_{status}", _text(entry.get("message")) or whole)
        for entry in entries
    )
    return items or (ErrorItem(_text(error.get("status")) or f"HTTP_{status}", whole),)


def _error_info(detail: Mapping[str, object]) -> Mapping[str, object] | None:
    """ErrorInfo is wrapped in an operation's details and bare (with @type) in an HTTP error's."""
    wrapped = _map(detail.get("errorInfo"))
    if wrapped is not None:
        return wrapped
    return detail if "reason" in detail else None


def _zones(info: Mapping[str, object]) -> Iterator[str]:
    data = _map(info.get("metadatas")) or _map(info.get("metadata")) or {}
    return (zone for part in _text(data.get("zonesAvailable")).split(",") if (zone := part.strip()))


def _limit_name(detail: Mapping[str, object]) -> str:
    quota = _map(detail.get("quotaInfo")) or {}
    return _text(quota.get("limitName")).partition("-per-")[0].replace("-", "_").upper()


def _decode(body: str) -> Mapping[str, object] | None:
    try:
        return _map(json.loads(body))
    except ValueError:
        return None


def _map(value: object) -> Mapping[str, object] | None:
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType] - decoded JSON


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] - decoded JSON


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
