"""Answers of RunPod: a REST v2 problem, GraphQL's errors, a pod, or an exception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from widelane.lanes.pasted.judged import Judged, fine
from widelane.lanes.pasted.text import Pasted
from widelane.lanes.runpod.answer import inside
from widelane.lanes.runpod.standing import judge as judge_noted


def judge(pasted: Pasted, _kind: str) -> Judged:
    """Judge one."""
    noted = _noted(pasted)
    failure = judge_noted(noted)
    if failure is None:
        return fine("the pod is there and nothing is wrong with it")
    return Judged(failure)


def _noted(pasted: Pasted) -> Mapping[str, Any]:
    """In the form in which the lane notes an answer down: interface, status, body."""
    document, status = pasted.document, pasted.status
    if document is None:
        return _words(pasted)
    if isinstance(document.get("exc_type"), str):
        return document
    if "api" in document or "http_status" in document:
        return {**document, "http_status": _number(document.get("http_status")) or status or 200}
    if "detail" in document:
        return {"api": "v2", "http_status": _number(document.get("status")) or status or 500, "body": document}
    pod = document if "desiredStatus" in document else None
    if pod is not None or "errors" in document or "data" in document:
        body: Mapping[str, Any] = document if pod is None else {"data": {"pod": pod}}
        return {"api": "graphql", "http_status": status or 200, "body": body}
    body = inside(document, "pod") or document
    usual = 200 if isinstance(body.get("id"), str) else 500
    return {"api": "v2", "http_status": _number(document.get("status")) or status or usual, "body": body}


def _words(pasted: Pasted) -> Mapping[str, Any]:
    """A status and no JSON is a proxy's page; words alone are what the package or the console showed."""
    raised, status = pasted.exception, pasted.status
    if raised is not None:
        return {"exc_type": raised[0], "message": raised[1]}
    if status is not None:
        return {"api": "v2", "http_status": status, "body": pasted.text}
    return {"api": "graphql", "http_status": 200, "body": {"errors": [{"message": pasted.text}]}}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599 else None
