"""Answers of Compute Engine: an operation, an HTTP error's body, an exception, or what gcloud printed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from widelane.lanes.gcp import answer
from widelane.lanes.gcp.answer import Answer
from widelane.lanes.gcp.classify import classify
from widelane.lanes.pasted.judged import Judged, fine
from widelane.lanes.pasted.text import Pasted

_CALL = re.compile(r"\b(\d{3}) (?:GET|POST|PUT|PATCH|DELETE) https?://\S+?:? (.*)", re.DOTALL)
_WORD = re.compile(r"\b(?:[A-Z]+(?:_[A-Z0-9]+)+|STOCKOUT)\b")
_QUOTED = re.compile(r"'[^'\n]*'")
_SAYS: tuple[tuple[re.Pattern[str], str, int | None], ...] = (
    (re.compile(r"Quota '\w+' exceeded"), "QUOTA_EXCEEDED", None),
    (re.compile(r"rate ?limit exceeded", re.IGNORECASE), "rateLimitExceeded", 403),
    (re.compile(r"credentials were not found|invalid authentication|Reauthenticat", re.IGNORECASE), "authError", 401),
    (re.compile(r"Required '[\w.]+' permission|permission denied", re.IGNORECASE), "forbidden", 403),
    (re.compile(r"has not been used in project|API .* disabled"), "accessNotConfigured", 403),
    (re.compile(r"already exists"), "alreadyExists", 409),
    (re.compile(r"was not found"), "notFound", 404),
)
"""Sentences that stand without their code in what people copy: code and status with which the service sends them."""
_NOTHING_CAME = re.compile(r"timed out|connection (?:reset|refused|aborted)|broken pipe|name resolution", re.IGNORECASE)


def judge(pasted: Pasted, _kind: str) -> Judged:
    """Judge one."""
    document = pasted.document
    if document is None:
        return Judged(classify(_of_text(pasted)))
    body = document.get("body")
    if "body" in document and document.get("kind") in ("http", "operation", "transport"):
        inner = _mapping(body)
        status = document.get("http_status")
        if inner is None:
            return Judged(classify(answer.http(_number(status) or 500, str(body))))
        return _judged(inner, _number(status), document["kind"] == "operation", pasted)
    return _judged(document, pasted.status, False, pasted)


def _judged(document: Mapping[str, Any], status: int | None, operation: bool, pasted: Pasted) -> Judged:
    exception = document.get("exception", document.get("exc_type"))
    if isinstance(exception, str):
        return Judged(classify(answer.transport(exception, str(document.get("message", "")))))
    if operation or document.get("kind") == "compute#operation" or "operationType" in document:
        return _operation(document)
    error = _mapping(document.get("error"))
    if error is None and isinstance(document.get("kind"), str):
        return fine(f"a {str(document['kind']).removeprefix('compute#')} {document.get('status', '')}".strip())
    error = error if error is not None else _bare(document)
    if error is None:
        return Judged(classify(_of_text(pasted)))
    return Judged(classify(_of_error(error, status)))


def _operation(document: Mapping[str, Any]) -> Judged:
    if document.get("error"):
        return Judged(classify(answer.operation(document)))
    status = document.get("status", "")
    return fine("the operation succeeded" if status == "DONE" else f"the operation is {status or 'under way'}")


def _bare(document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The inside of an error without its wrapping, or one entry of its list."""
    if isinstance(document.get("errors"), list):
        return document
    named = isinstance(document.get("code"), (str, int)) or isinstance(document.get("reason"), str)
    if not named or not isinstance(document.get("message"), str):
        return None
    return document if isinstance(document.get("code"), int) else {"errors": [document]}


def _of_error(error: Mapping[str, Any], status: int | None) -> Answer:
    """An HTTP error has a number as its code, an operation's error only a list of codes."""
    given = _number(error.get("code")) or status
    entries = error.get("errors")
    listed = cast("list[object]", entries) if isinstance(entries, list) else []
    coded = any(isinstance((_mapping(entry) or {}).get("code"), str) for entry in listed)
    if coded and given is None:
        return answer.operation({"status": "DONE", "error": dict(error)})
    return answer.http(given or 400, {"error": dict(error)})


def _of_text(pasted: Pasted) -> Answer:
    """What people copy from a terminal: the words are the service's own, only their wrapping is lost."""
    text = pasted.text
    called = _CALL.search(text)
    status = int(called.group(1)) if called is not None else pasted.status
    said = called.group(2) if called is not None else text
    codes = list(dict.fromkeys(_WORD.findall(_QUOTED.sub("", said))))
    for pattern, code, usual in _SAYS:
        if pattern.search(said) and not codes:
            codes, status = [code], status or usual
    if status is not None:
        errors = [{"reason": code, "message": said} for code in codes]
        return answer.http(status, {"error": {"code": status, "message": said, "errors": errors}})
    raised = pasted.exception
    if not codes and (raised is not None or _NOTHING_CAME.search(text)):
        name, message = raised or ("ConnectionError", text)
        return answer.transport(name, message)
    errors = [{"code": code, "message": said} for code in codes or ["TEXT"]]
    return answer.operation({"status": "DONE", "error": {"errors": errors}})


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599 else None


def _mapping(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
