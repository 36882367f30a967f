"""The metadata servers over HTTP: one application, told apart by the port that was called."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from widelane.simcloud import metadata
from widelane.simcloud.lifecycle import advance
from widelane.simcloud.records import Instance
from widelane.simcloud.wake import Changes
from widelane.simcloud.world import World

_ROOT = "/computeMetadata/v1"
_FLAVOR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
_WAIT_MAX = 3600


def build(world: World, changes: Changes) -> Starlette:
    """The application that serves every VM's port."""
    server = _Metadata(world, changes)
    everything = ["GET", "PUT", "DELETE"]
    return Starlette(
        routes=[
            Route("/", server.ping, methods=["GET"]),
            Route(_ROOT + "/instance/service-accounts/{account}/token", server.token, methods=["GET"]),
            Route(_ROOT + "/instance/guest-attributes/{namespace}/{key}", server.guest_attribute, methods=everything),
            Route(_ROOT + "/{path:path}", server.get, methods=["GET"]),
            Route(_ROOT, server.get, methods=["GET"]),
        ]
    )


class _Metadata:
    def __init__(self, world: World, changes: Changes) -> None:
        self._world = world
        self._changes = changes

    async def ping(self, _request: Request) -> Response:
        """What client libraries probe to learn whether they are on a VM."""
        return PlainTextResponse("computeMetadata/\n", headers=_FLAVOR)

    async def token(self, request: Request) -> Response:
        """An access token of the VM's service account."""
        it, refused = self._enter(request)
        if it is None:
            return refused
        account = metadata.account(self._world, it)
        if account is None or request.path_params["account"] not in {"default", account[0]}:
            return _plain("Not Found\n", 404)
        return JSONResponse(metadata.issue_token(self._world, it), headers=_FLAVOR)

    async def guest_attribute(self, request: Request) -> Response:
        """Read, write or remove one guest attribute."""
        it, refused = self._enter(request)
        if it is None:
            return refused
        if not metadata.guest_attributes_on(it):
            return _plain("Guest attributes endpoint access is disabled (enable-guest-attributes isn't TRUE).\n", 403)
        namespace, key = unquote(request.path_params["namespace"]), unquote(request.path_params["key"])
        if request.method == "GET":
            value = it.guest_attributes.get(namespace, {}).get(key)
            return _plain("Not Found\n", 404) if value is None else _plain(value)
        value = (await request.body()).decode(errors="replace") if request.method == "PUT" else None
        if value is not None and len(value) > metadata.GUEST_VALUE_MAX:
            return _plain("The value is too large.\n", 413)
        metadata.set_guest_attribute(self._world, it, namespace, key, value)
        self._changes.notify()
        return _plain("")

    async def get(self, request: Request) -> Response:
        """A value, a listing, or JSON of a subtree; `wait_for_change` holds the answer until it differs."""
        it, refused = self._enter(request)
        if it is None:
            return refused
        text = self._read(it, request)
        if text is None:
            return _plain("Not Found\n", 404)
        if request.query_params.get("wait_for_change", "").lower() == "true":
            seconds = request.query_params.get("timeout_sec", str(_WAIT_MAX))
            if not seconds.isdecimal():
                return _plain("timeout_sec must be a whole number.\n", 400)
            text = await self._wait(it, request, text, min(int(seconds), _WAIT_MAX))
        headers = {**_FLAVOR, "ETag": metadata.etag(text)}
        kind = "application/json" if _wants_json(request) else "application/text"
        return Response(text, media_type=kind, headers=headers)

    async def _wait(self, it: Instance, request: Request, text: str, limit: int) -> str:
        known = request.query_params.get("last_etag", metadata.etag(text))

        def differs() -> bool:
            return metadata.etag(self._read(it, request) or "") != known

        await self._changes.until(differs, limit)
        return self._read(it, request) or ""

    def _read(self, it: Instance, request: Request) -> str | None:
        path = request.path_params.get("path", "")
        node = metadata.look(metadata.tree(self._world, it), path)
        if node is None or not _wants_json(request):
            return None if node is None else metadata.as_text(node)
        return metadata.as_json(node, verbatim="attributes" in path.split("/"))

    def _enter(self, request: Request) -> tuple[Instance | None, Response]:
        """The VM whose port was called, or the refusal."""
        if request.headers.get("metadata-flavor") != "Google":
            return None, _plain("Missing Metadata-Flavor:Google header.\n", 403)
        advance(self._world)
        server: tuple[str, int] = request.scope["server"]
        for it in self._world.state.instances.values():
            if it.port == server[1]:
                return it, Response()
        return None, _plain("No VM has this metadata server any more.\n", 503)


def _wants_json(request: Request) -> bool:
    params = request.query_params
    return params.get("recursive", "").lower() == "true" or params.get("alt") == "json"


def _plain(text: str, status: int = 200) -> Response:
    return Response(text, status, media_type="application/text", headers=_FLAVOR)
