"""A server on a desk without a dispatcher, and clients of both eras."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.fakes.moves import MovingRuns
from widelane import config
from widelane.server.app import build
from widelane.tools.desk import Desk

PLAN = """\
widelane: 1
task: "1121"
phases:
  - name: generate
    intent: capture-7b
    axes: {model: 2, draw_set: 10}
    gpu_hours: 8
    setup_minutes: 8
    width: 8
    min_width: 1
    command: python gen.py --model {model} --draws {draw_set}
    outputs: ["out/{model}/{draw_set}.json"]
"""
NARROW = PLAN.replace("width: 8", "width: 1")

Connect = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def runs() -> MovingRuns:
    return MovingRuns()


@pytest.fixture
def desk(tmp_path: Path, runs: MovingRuns) -> Desk:
    return Desk(config.load(tmp_path, os.environ), cwd=tmp_path, runs=lambda _: runs)


@pytest.fixture
def connect(desk: Desk, era: str) -> Connect:
    """A client of this era, in the server's own process."""

    @asynccontextmanager
    async def connected(**options: Any) -> AsyncIterator[Client]:
        async with Client(build(desk), mode=era, **options) as client:
            yield client

    return connected


@pytest.fixture
def over_stdio(tmp_path: Path, era: str) -> Connect:
    """A client of this era and a server in a process of its own, whose working folder is `tmp_path`."""

    @asynccontextmanager
    async def connected(*arguments: str) -> AsyncIterator[Client]:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "widelane.server", *arguments],
            cwd=tmp_path,
            env=dict(os.environ),
        )
        async with Client(server, mode=era, read_timeout_seconds=30) as client:
            yield client

    return connected
