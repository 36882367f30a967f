"""Listens on loopback ports that can be opened and closed one by one, with uvicorn's HTTP protocol on them."""

from __future__ import annotations

import asyncio
import random
import socket

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

HOST = "127.0.0.1"
PORTS = range(20000, 32000)
"""Below what the kernel gives to outgoing connections, so that a restarted server finds its ports free."""

_BACKLOG = 256
_ANSWER_SECONDS = 0.2
_GRACE_SECONDS = 2.0


class _Droppable(H11Protocol):
    """Shows the application its transport (`request.state.transport`), so that a fault can close it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}


class Listener:
    """Serves one application on any number of ports. Set `app` before the first request can come."""

    app: ASGIApp

    def __init__(self) -> None:
        self._config = uvicorn.Config(
            self._call,
            http=_Droppable,
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=600,
        )
        self._config.load()
        self._state = ServerState()
        self._servers: dict[int, asyncio.Task[asyncio.Server]] = {}

    def open(self, port: int) -> int:
        """Listen on `port` (0: choose one). The port; connections queue from now on. Raises OSError."""
        bound = _bind(port)
        bound.listen(_BACKLOG)
        chosen = int(bound.getsockname()[1])
        loop = asyncio.get_running_loop()
        self._servers[chosen] = loop.create_task(loop.create_server(self._protocol, sock=bound))
        return chosen

    def close(self, port: int) -> None:
        """Stop listening; requests under way are finished."""
        task = self._servers.pop(port, None)
        if task is not None:
            task.add_done_callback(lambda done: done.result().close())

    async def shutdown(self) -> None:
        """Close every port and connection, and let what was under way end."""
        for port in list(self._servers):
            self.close(port)
        await self._settle(_ANSWER_SECONDS)
        for connection in list(self._state.connections):
            connection.transport.close()
        await self._settle(_GRACE_SECONDS)

    async def _settle(self, seconds: float) -> None:
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=seconds)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    def _protocol(self) -> asyncio.Protocol:
        return _Droppable(config=self._config, server_state=self._state, app_state={})


def _bind(port: int) -> socket.socket:
    start = random.randrange(len(PORTS))
    choices = [port] if port else [PORTS[(start + step) % len(PORTS)] for step in range(len(PORTS))]
    for choice in choices:
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((HOST, choice))
        except OSError:
            bound.close()
        else:
            bound.setblocking(False)
            return bound
    raise OSError(f"no free port: {port or PORTS}")
