"""What RunPod answered, brought to one form before it is judged.

A failure comes as an HTTP status with an RFC 9457 body (REST v2), as GraphQL errors under HTTP 200, as an exception
of the `runpod` package that lost its status, or as nothing at all. All become an `Answer`: plain data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

BODY_LIMIT = 4000


class Api(StrEnum):
    """Which interface answered; NONE when nothing came back."""

    V2 = "v2"
    GRAPHQL = "graphql"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Answer:
    """A failed answer. `code` is the most exact name it gives itself, `text` its own words."""

    api: Api
    status: int | None
    code: str
    text: str
    body: str
    """As it came, bounded."""
    parsed: bool
    """False: the body is not an answer of this API (a proxy's page, say)."""
    retry_seconds: float | None = None
    """How long the service asks to be left alone."""


def v2(status: int, body: str | Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
    """A REST v2 answer that is not a success."""
    document = decode(body)
    raw = body if isinstance(body, str) else json.dumps(body)
    problem = document if document is not None and ("detail" in document or "title" in document) else None
    text = "" if problem is None else _problem(problem)
    return Answer(
        api=Api.V2,
        status=status,
        code=f"HTTP_{status}",
        text=text,
        body=raw[:BODY_LIMIT],
        parsed=problem is not None,
        retry_seconds=_retry_seconds(headers),
    )


def graphql(status: int, body: str | Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
    """A GraphQL answer with errors, or without the data that was asked for."""
    document = decode(body)
    raw = body if isinstance(body, str) else json.dumps(body)
    errors = [] if document is None else [entry for entry in map(_map, _list(document.get("errors"))) if entry]
    first: Mapping[str, Any] = errors[0] if errors else {}
    code = _text((_map(first.get("extensions")) or {}).get("code"))
    default = "GRAPHQL_ERROR" if errors else f"HTTP_{status}" if status >= 400 else "NO_DATA"
    return Answer(
        api=Api.GRAPHQL,
        status=status,
        code=code or default,
        text="\n".join(_text(entry.get("message")) for entry in errors),
        body=raw[:BODY_LIMIT],
        parsed=document is not None and ("errors" in document or "data" in document),
        retry_seconds=_retry_seconds(headers),
    )


def raised(exception: str, message: str = "") -> Answer:
    """An exception and no answer; `exception` is the class name, dotted or not."""
    name = exception.rpartition(".")[2]
    return Answer(
        api=Api.NONE,
        status=None,
        code=name,
        text=message,
        body=f"{name}: {message}"[:BODY_LIMIT] if message else name,
        parsed=False,
    )


def _problem(document: Mapping[str, Any]) -> str:
    lines = [_text(document.get("detail")) or _text(document.get("title"))]
    lines += [text for text in map(_text, _list(document.get("errors"))) if text]
    return "\n".join(lines)


def _retry_seconds(headers: Mapping[str, str] | None) -> float | None:
    """Retry-After in seconds; its other form, a date, is passed over."""
    for name, value in (headers or {}).items():
        if name.lower() == "retry-after" and value.strip().isdecimal():
            return float(value)
    return None


def decode(body: str | Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A JSON object; None for anything else."""
    if not isinstance(body, str):
        return body
    try:
        return _map(json.loads(body))
    except ValueError:
        return None


def inside(document: object, *path: str) -> Mapping[str, Any]:
    """The object at a path of keys; empty when there is none."""
    for key in path:
        document = (_map(document) or {}).get(key)
    return _map(document) or {}


def _map(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
