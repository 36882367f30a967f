"""The Compute Engine REST v1 subset over HTTP: one request, one transaction, one line in the log."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from widelane.simcloud import faults, metadata, refusals
from widelane.simcloud.actions import CALLER
from widelane.simcloud.faults import Faults
from widelane.simcloud.lifecycle import advance
from widelane.simcloud.records import Json, Operation
from widelane.simcloud.refusals import Refused
from widelane.simcloud.scenario import Fault, Method
from widelane.simcloud.timebase import stamp
from widelane.simcloud.wake import Changes
from widelane.simcloud.world import World

PREFIX = "/compute/v1/projects/{project}"
WAIT_SECONDS = 120.0
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/compute")
_LOGGED_VALUE = 200


@dataclass(frozen=True, slots=True)
class Call:
    """One request, taken apart."""

    method: Method
    at: Mapping[str, str]
    """Names in the path: zone, name, region."""
    params: Mapping[str, str]
    body: Json
    user: str
    outcome: Json | None = None
    """How a fault wants the operation to end."""

    @property
    def zone(self) -> str:
        """ "" for what isn't in a zone."""
        return self.at.get("zone", "")

    @property
    def request_id(self) -> str:
        """ "" when none was given."""
        return self.params.get("requestId", "")

    @property
    def machine_type(self) -> str:
        """Of an insert's body."""
        return str(self.body.get("machineType", "")).rpartition("/")[2]


Act = Callable[[World, Call], Json]
Endpoint = Callable[[Request], Awaitable[Response]]


class Api:
    """Turns HTTP requests into calls of the methods, with faults and the request log around them."""

    def __init__(self, world: World, struck: Faults, changes: Changes, called: Callable[[], None]) -> None:
        self._world = world
        self._faults = struck
        self._changes = changes
        self._called = called

    def route(self, verb: str, path: str, method: Method, act: Act) -> Route:
        """A route under the project."""
        return Route(PREFIX + path, self._endpoint(method, act), methods=[verb])

    def _endpoint(self, method: Method, act: Act) -> Endpoint:
        async def endpoint(request: Request) -> Response:
            self._called()
            advance(self._world)
            text = await request.body()
            try:
                call = self._call(request, method, text)
            except Refused as refused:
                return self._log(request, None, None, JSONResponse(refused.body, refused.status))
            fault = self._faults.strike(method, call.zone, call.machine_type)
            if faults.undone(fault):
                answer = self._log(request, call, fault, Response(status_code=204))
            else:
                answer = self._answer(request, call, act, fault)
            if method is Method.WAIT and answer.status_code == 200:
                answer = await self._wait(call, act)
            return await faults.deliver(request, fault, answer)

        return endpoint

    def _call(self, request: Request, method: Method, text: bytes) -> Call:
        at: dict[str, str] = dict(request.path_params)
        project = self._world.scenario.project
        if at.pop("project") != project:
            raise refusals.not_found(f"projects/{request.path_params['project']}")
        if "zone" in at and at["zone"] not in self._world.atlas.zones:
            raise refusals.not_found(f"projects/{project}/zones/{at['zone']}")
        try:
            body = json.loads(text or "{}")
        except ValueError as error:
            raise refusals.http(400, "Parse Error", "parseError") from error
        if not isinstance(body, dict):
            raise refusals.http(400, "Parse Error", "parseError")
        return Call(method, at, dict(request.query_params), cast("Json", body), self._user(request))

    def _user(self, request: Request) -> str:
        """Who calls: nobody in particular, or a VM by its token. Raises Refused for any other token."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not scheme:
            return CALLER
        vm = metadata.holder(self._world, token) if scheme.lower() == "bearer" else None
        account = None if vm is None else metadata.account(self._world, vm)
        if account is None:
            raise refusals.unauthenticated()
        if not set(account[1]) & set(_SCOPES):
            raise refusals.out_of_scope()
        return account[0]

    def _answer(self, request: Request, call: Call, act: Act, fault: Fault | None) -> Response:
        answer = faults.instead(self._world, fault)
        if answer is None:
            outcome = faults.outcome(self._world, fault)
            answer = self._act(call, act, outcome)
        return self._log(request, call, fault, answer)

    def _act(self, call: Call, act: Act, outcome: Json | None) -> Response:
        if outcome is not None:
            call = Call(call.method, call.at, call.params, call.body, call.user, outcome)
        try:
            return JSONResponse(act(self._world, call))
        except Refused as refused:
            return JSONResponse(refused.body, refused.status)

    async def _wait(self, call: Call, act: Act) -> Response:
        """Hold the answer until the operation is done, two simulated minutes at most."""
        state, name = self._world.state, call.at["name"]

        def done() -> bool:
            found: Operation | None = state.operations.get(name)
            return found is None or found.done

        await self._changes.until(done, WAIT_SECONDS / self._world.time.rate)
        self._called()
        return self._act(call, act, None)

    def _log(self, request: Request, call: Call | None, fault: Fault | None, answer: Response) -> Response:
        """Write the request's line, commit it with all that the request did, and let the effects out."""
        world = self._world
        entry: Json = {
            "at": stamp(world.time.began, world.now()),
            "verb": request.method,
            "path": request.url.path,
            "params": dict(request.query_params),
            "status": answer.status_code,
        }
        if call is not None:
            entry |= {"method": call.method.value, "user": call.user, **call.at}
            if call.body:
                entry["body"] = _shortened(call.body)
        if fault is not None:
            entry["fault"] = fault.do.value
        if faults.undone(fault):
            entry["status"] = 0
        world.state.log(entry)
        advance(world)
        self._changes.notify()
        return answer


def _shortened(body: Json) -> Json:
    """A request body with long metadata values cut."""
    metadata_given = body.get("metadata")
    items = cast("Json", metadata_given).get("items") if isinstance(metadata_given, dict) else None
    if not isinstance(items, list):
        return body
    return {**body, "metadata": {"items": [_cut(item) for item in cast("list[object]", items)]}}


def _cut(item: object) -> object:
    if not isinstance(item, dict):
        return item
    entry = cast("Json", item)
    value = str(entry.get("value", ""))
    if len(value) <= _LOGGED_VALUE:
        return entry
    return {**entry, "value": f"{value[:_LOGGED_VALUE]}... ({len(value)} characters)"}
