"""The server's life: listen, take over what was left, follow the clock, leave when nobody is there."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from widelane.simcloud import metadata_app, methods
from widelane.simcloud.api import Api
from widelane.simcloud.client import ENDPOINT_FILE, SimEndpoint
from widelane.simcloud.faults import Faults
from widelane.simcloud.lifecycle import advance, busy, kill_all, next_due, resume, retire
from widelane.simcloud.listening import HOST, Listener
from widelane.simcloud.scenario_file import parse_fault
from widelane.simcloud.secret_manager import SecretManager
from widelane.simcloud.sim_api import FAULTS_FACT, SimApi
from widelane.simcloud.wake import Changes
from widelane.simcloud.world import World

IDLE_SECONDS = 120.0
PORT_FACT = "port"
_LOOK_SECONDS = 0.25
"""How often the VMs are looked at when nothing is due."""
_POLL_SECONDS = 0.01
_RETIRE_SECONDS = 15.0

Ready = Callable[[SimEndpoint], None]


@dataclass(frozen=True, slots=True)
class Options:
    """`port` 0: the one it had, else any. `idle_seconds` are real ones. `isolation`: auto, namespace, reaper."""

    port: int = 0
    idle_seconds: float = IDLE_SECONDS
    isolation: str = "auto"


class Host:
    """One run of the server on a state folder."""

    def __init__(self, folder: Path, world: World, vm_ports: Listener) -> None:
        self._folder = folder
        self._world = world
        self._vm_ports = vm_ports
        self._api_ports = Listener()
        self._changes = Changes()
        self._stopping = asyncio.Event()
        self._called_at = time.monotonic()

    async def run(self, options: Options, ready: Ready | None) -> None:
        """Serve until told to stop, or idle; then end what lives and close everything."""
        self._vm_ports.app = metadata_app.build(self._world, self._changes)
        self._api_ports.app = self._application()
        port = self._open(options.port)
        resume(self._world)
        with self._signals():
            endpoint = self._announce(port)
            if ready is not None:
                ready(endpoint)
            await self._live(options.idle_seconds)
        await self._retire(self._abandoned())
        (self._folder / ENDPOINT_FILE).unlink(missing_ok=True)
        self._changes.close()
        await self._api_ports.shutdown()
        await self._vm_ports.shutdown()

    def _application(self) -> Starlette:
        world = self._world
        noted = world.state.facts.get(FAULTS_FACT, [])
        faults = Faults(world, [parse_fault(json.dumps(body), world.atlas, world.cases) for body in noted])
        api = Api(world, faults, self._changes, self._called)
        sim = SimApi(world, faults, self._changes, self._called, self._stopping.set)
        secrets = SecretManager(world, self._called)
        routes = [*methods.routes(api), *secrets.routes(), *sim.routes()]
        return Starlette(routes=routes, exception_handlers={HTTPException: _not_simulated})

    def _called(self) -> None:
        self._called_at = time.monotonic()

    def _open(self, wanted: int) -> int:
        """The port asked for, or the one from before; another only when that one was taken meanwhile."""
        before = int(self._world.state.facts.get(PORT_FACT, 0))
        try:
            port = self._api_ports.open(wanted or before)
        except OSError:
            if wanted or not before:
                raise
            port = self._api_ports.open(0)
        self._world.state.set_fact(PORT_FACT, port)
        self._world.state.commit()
        return port

    def _announce(self, port: int) -> SimEndpoint:
        scenario = self._world.scenario
        made = SimEndpoint(f"http://{HOST}:{port}", scenario.project, scenario.rate, os.getpid(), self._folder)
        noted = {
            "url": made.url,
            "pid": made.pid,
            "project": made.project,
            "clock_rate": made.clock_rate,
            "cloud": self._world.state.facts["cloud"],
        }
        draft = self._folder / f"{ENDPOINT_FILE}.new"
        draft.write_text(json.dumps(noted), encoding="utf-8")
        draft.rename(self._folder / ENDPOINT_FILE)
        return made

    async def _live(self, idle_seconds: float) -> None:
        while not self._stopping.is_set() and not self._abandoned():
            advance(self._world)
            self._changes.notify()
            idle = time.monotonic() - self._called_at
            if idle > idle_seconds and not busy(self._world):
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._woken()

    async def _woken(self) -> None:
        """A request may have made something due sooner."""
        waits = [asyncio.ensure_future(self._stopping.wait()), asyncio.ensure_future(self._changes.next())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def _pause(self) -> float:
        due = next_due(self._world)
        if due is None:
            return _LOOK_SECONDS
        return min(_LOOK_SECONDS, max(_POLL_SECONDS, (due - self._world.now()) / self._world.time.rate))

    def _abandoned(self) -> bool:
        """Somebody removed the state folder: this cloud can't be found any more."""
        return not (self._folder / ENDPOINT_FILE).exists()

    async def _retire(self, abandoned: bool) -> None:
        for _ in range(int(_RETIRE_SECONDS / _POLL_SECONDS)):
            if kill_all(self._world) if abandoned else retire(self._world):
                return
            await asyncio.sleep(_POLL_SECONDS)

    @contextlib.contextmanager
    def _signals(self) -> Generator[None]:
        """SIGTERM and SIGINT end the cloud as POST /sim/stop does."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)


async def _not_simulated(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = f"{request.method} {request.url.path} isn't simulated"
    entry = {"message": message, "domain": "global", "reason": "notSimulated"}
    return JSONResponse({"error": {"code": status, "message": message, "errors": [entry]}}, status)
