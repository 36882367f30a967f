"""Injected faults: which request they strike, and how the answer goes wrong."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from widelane.simcloud.records import Json
from widelane.simcloud.scenario import ANY, Fault, FaultKind, Method
from widelane.simcloud.world import World

_CASES: Final = {
    FaultKind.HTTP_503: "transient_backend_error",
    FaultKind.HTTP_429: "transient_rate_limit_429_errorinfo",
    FaultKind.HTTP_502: "transient_html_502",
}
_UNANSWERED: Final = (FaultKind.DROP_BEFORE_COMMIT, FaultKind.DROP_AFTER_COMMIT, FaultKind.LOSE_ANSWER)


class Faults:
    """The scenario's faults, and those added while the server runs."""

    def __init__(self, world: World, added: list[Fault]) -> None:
        self._world = world
        self._added = added

    def add(self, fault: Fault) -> None:
        """One more; its count starts now."""
        self._added.append(fault)

    def strike(self, method: Method, zone: str, machine_type: str) -> Fault | None:
        """The first fault that strikes this request; every fault that matches counts it."""
        struck = None
        for index, fault in enumerate((*self._world.scenario.faults, *self._added)):
            if fault.on != method or fault.zone not in {ANY, zone} or fault.machine_type not in {ANY, machine_type}:
                continue
            seen = self._world.state.count(f"fault/{index}")
            if struck is None and fault.nth <= seen < fault.nth + fault.times:
                struck = fault
        return struck


def outcome(world: World, fault: Fault | None) -> Json | None:
    """How the operation ends that the fault dictates; None when it dictates none."""
    case = _case(world, fault)
    if case is None or case["kind"] != "operation":
        return None
    body = case["body"]
    return {"status": body.get("httpErrorStatusCode", case["http_status"]), "errors": body["error"]["errors"]}


def instead(world: World, fault: Fault | None) -> Response | None:
    """The HTTP answer that takes the place of doing anything; None: the request is carried out."""
    case = _case(world, fault)
    if case is None or case["kind"] != "http":
        return None
    body, status = case["body"], int(case["http_status"])
    return HTMLResponse(body, status) if isinstance(body, str) else JSONResponse(body, status)


def undone(fault: Fault | None) -> bool:
    """Whether the fault keeps the request from being carried out without any answer."""
    return fault is not None and fault.do is FaultKind.DROP_BEFORE_COMMIT


async def deliver(request: Request, fault: Fault | None, answer: Response) -> Response:
    """The answer, or none: then the connection is closed before anything of it is sent."""
    if fault is None or fault.do not in _UNANSWERED:
        return answer
    transport: asyncio.Transport = request.state.transport
    if fault.do is FaultKind.LOSE_ANSWER:
        try:
            async with asyncio.timeout(fault.seconds):
                await _disconnected(request)
        except TimeoutError:
            transport.abort()
    else:
        transport.abort()
    await _disconnected(request)
    return answer


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _case(world: World, fault: Fault | None) -> Json | None:
    if fault is None:
        return None
    return world.cases.get(fault.case or _CASES.get(fault.do, ""))
