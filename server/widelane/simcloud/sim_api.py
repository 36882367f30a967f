"""Routes of the simulator itself, under /sim: its clock, log and state, and ways to make things happen."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from widelane.errors import ScenarioError
from widelane.models.plan import ProvisioningModel
from widelane.simcloud import actions, views
from widelane.simcloud.faults import Faults
from widelane.simcloud.lifecycle import advance
from widelane.simcloud.records import Instance, Json
from widelane.simcloud.refusals import Refused
from widelane.simcloud.scenario import Combination
from widelane.simcloud.scenario_file import parse_fault
from widelane.simcloud.timebase import stamp
from widelane.simcloud.wake import Changes
from widelane.simcloud.world import World

FAULTS_FACT = "faults"


class BadCall(Exception):
    """A call of /sim that can't be carried out."""


@dataclass(frozen=True, slots=True)
class SimApi:
    """The routes; `called` marks that somebody is there, `stop` ends the server."""

    world: World
    faults: Faults
    changes: Changes
    called: Callable[[], None]
    stop: Callable[[], None]

    def routes(self) -> list[Route]:
        """Every route under /sim."""
        return [
            self._route("GET", "clock", lambda _body, _query: self._clock()),
            self._route("GET", "requests", self._requests),
            self._route("GET", "state", lambda _body, _query: self._state()),
            self._route("POST", "advance", self._advance),
            self._route("POST", "preempt", self._preempt),
            self._route("POST", "faults", self._fault),
            self._route("POST", "stock", self._stock),
            self._route("POST", "stop", self._stop),
        ]

    def _route(self, verb: str, name: str, act: Callable[[Json, Json], Json]) -> Route:
        async def endpoint(request: Request) -> Response:
            self.called()
            advance(self.world)
            try:
                body = json.loads(await request.body() or b"{}")
                answer = act(body, dict(request.query_params))
            except (BadCall, ScenarioError, Refused, ValueError, KeyError, TypeError) as error:
                return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)
            advance(self.world)
            self.changes.notify()
            return JSONResponse(answer)

        return Route(f"/sim/{name}", endpoint, methods=[verb])

    def _clock(self) -> Json:
        time = self.world.time
        now = self.world.now()
        return {
            "now": stamp(time.began, now),
            "elapsed": now,
            "rate": time.rate,
            "project": self.world.scenario.project,
            "cloud": self.world.state.facts.get("cloud"),
        }

    def _requests(self, _body: Json, query: Json) -> Json:
        return {"requests": self.world.state.requests_since(int(query.get("since", 0)))}

    def _state(self) -> Json:
        state = self.world.state
        return {
            "instances": [self._shown(each) for each in sorted(state.instances.values(), key=lambda each: each.key)],
            "operations_running": sum(not each.done for each in state.operations.values()),
            "stock_moved": {key: change for key, change in sorted(state.stock.items()) if change},
        }

    def _shown(self, it: Instance) -> Json:
        return {
            "name": it.name,
            "zone": it.zone,
            "id": it.id,
            "status": views.status(self.world, it).value,
            "machine_type": it.machine_type,
            "model": it.model.value,
            "pid": None if it.process is None else it.process.pid,
            "isolation": None if it.process is None else it.process.isolation,
            "metadata_port": it.port or None,
        }

    def _advance(self, body: Json, _query: Json) -> Json:
        seconds = float(body["seconds"])
        if seconds < 0:
            raise BadCall("time doesn't go back")
        self.world.time.skip(seconds)
        return self._clock()

    def _preempt(self, body: Json, _query: Json) -> Json:
        name = body["instance"]
        for it in self.world.state.instances.values():
            if it.name == name and body.get("zone") in {None, it.zone}:
                actions.preempt(self.world, it)
                return {"preempted": name}
        raise BadCall(f"no instance {name!r}")

    def _fault(self, body: Json, _query: Json) -> Json:
        self.faults.add(parse_fault(json.dumps(body), self.world.atlas, self.world.cases))
        self.world.state.set_fact(FAULTS_FACT, [*self.world.state.facts.get(FAULTS_FACT, []), body])
        return {"fault": body}

    def _stock(self, body: Json, _query: Json) -> Json:
        """Set what is in stock now of one combination."""
        wanted = Combination(body["zone"], body["machine_type"], ProvisioningModel(body["model"]))
        if self.world.atlas.find(wanted.zone, wanted.machine_type) is None:
            raise BadCall(f"{wanted.machine_type} isn't offered in {wanted.zone}")
        count = int(body["count"])
        if count < 0:
            raise BadCall("stock can't be negative")
        self.world.move_stock(wanted, count - self.world.available(wanted))
        return {"stock": str(wanted), "count": count}

    def _stop(self, _body: Json, _query: Json) -> Json:
        self.stop()
        return {"stopping": True}
