"""As much of Secret Manager as a machine needs: read a version of a secret, with the machine's own token."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from widelane.simcloud import metadata
from widelane.simcloud.lifecycle import advance
from widelane.simcloud.records import Json
from widelane.simcloud.timebase import stamp
from widelane.simcloud.world import World

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class SecretManager:
    """The one route. Every secret of the scenario has one version; a value is in no log and in no state."""

    world: World
    called: Callable[[], None]

    def routes(self) -> list[Route]:
        """secrets.versions.access."""
        path = "/v1/projects/{project}/secrets/{name}/versions/{version}:access"
        return [Route(path, self.access, methods=["GET"])]

    async def access(self, request: Request) -> Response:
        """The value, or the service's refusal."""
        self.called()
        advance(self.world)
        it = request.path_params
        resource = f"projects/{it['project']}/secrets/{it['name']}"
        status, body = self._decide(request, resource)
        entry: Json = {
            "at": stamp(self.world.time.began, self.world.now()),
            "verb": "GET",
            "path": request.url.path,
            "params": {},
            "status": status,
            "method": "secret",
        }
        self.world.state.log(entry)
        self.world.state.commit()
        return JSONResponse(body, status)

    def _decide(self, request: Request, resource: str) -> tuple[int, Json]:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        vm = metadata.holder(self.world, token) if scheme.lower() == "bearer" else None
        account = None if vm is None else metadata.account(self.world, vm)
        if account is None:
            return _refused(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        if _SCOPE not in account[1]:
            return _refused(403, "PERMISSION_DENIED", "Request had insufficient authentication scopes.")
        it = request.path_params
        value = self.world.scenario.secrets.get(it["name"])
        if it["project"] != self.world.scenario.project or value is None:
            return _refused(404, "NOT_FOUND", f"Secret [{resource}] not found or has no versions.")
        if it["version"] not in {"latest", "1"}:
            return _refused(404, "NOT_FOUND", f"Secret Version [{resource}/versions/{it['version']}] not found.")
        data = value.encode()
        return 200, {"name": f"{resource}/versions/1", "payload": {"data": base64.b64encode(data).decode()}}


def _refused(code: int, status: str, message: str) -> tuple[int, Json]:
    return code, {"error": {"code": code, "message": message, "status": status}}
