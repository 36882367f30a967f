"""A RunPod of the test's own, and the lane on it by either transport."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.fakes.launches import rung
from tests.fakes.runpod_server import A100, H100, KEY, PCIE, RunpodServer, runpod_server
from tests.lanes.conftest import LONG_WORK, Yard
from widelane.config import RunpodSettings
from widelane.lanes.clock import SystemClock
from widelane.lanes.protocol import Granted, Launch, Machine, Pending, Progress
from widelane.lanes.runpod.lane import Patience, RunpodLane
from widelane.models.clock import Clock

Eventually = Callable[..., None]
Transport = Literal["rest2", "sdk"]
QUICK = Patience(poll=0.02, write=5.0, young=0.4, gone=60.0, read_pauses=(0.01, 0.02), longest_wait=0.2)


@dataclass
class Account:
    """One account at RunPod, and lanes on it."""

    server: RunpodServer
    transport: Transport
    yard: Yard

    def open(self, patience: Patience = QUICK, clock: Clock | None = None, **settings: Any) -> RunpodLane:
        """A new lane object, as another process would have it."""
        given = {"endpoint": self.server.url, "transport": self.transport, "key_env": "A_KEY", **settings}
        env = {"A_KEY": KEY}
        return RunpodLane(RunpodSettings.model_validate(given), clock or SystemClock(), env, patience)

    def launch(self, argv: tuple[str, ...] = LONG_WORK, **changes: Any) -> Launch:
        """A launch of two A100 unless changed."""
        width = changes.pop("width", 2)
        zones = (A100, PCIE, H100)
        where = rung("any", width, lane="runpod", gpu="", zones=zones)
        return self.yard.launch(where, changes.pop("zone", A100), argv, **changes)

    def create(self, launch: Launch, lane: RunpodLane | None = None) -> Progress:
        return (lane or self.open()).create(launch)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunpodServer]:
    with runpod_server(tmp_path / "runpod") as made:
        made.stock = {gpu: {1: 8, 2: 8, 4: 4, 8: 2} for gpu in (A100, PCIE, H100)}
        yield made


@pytest.fixture(params=["rest2", "sdk"])
def account(request: pytest.FixtureRequest, server: RunpodServer, yard: Yard) -> Account:
    if request.param == "sdk":
        pytest.importorskip("runpod", reason="the transport sdk needs the extra runpod")
    return Account(server, request.param, yard)


@pytest.fixture
def settled(eventually: Eventually) -> Callable[[RunpodLane, Launch], Progress]:
    """Create and ask again until the lane has decided."""

    def ask(lane: RunpodLane, launch: Launch) -> Progress:
        seen: list[Progress] = [lane.create(launch)]

        def decided() -> bool:
            last = seen[-1]
            if isinstance(last, Pending):
                seen.append(lane.poll(launch, last.operation) if last.operation else lane.create(launch))
            return not isinstance(seen[-1], Pending)

        eventually(decided, within=20.0)
        return seen[-1]

    return ask


@pytest.fixture
def granted(settled: Callable[[RunpodLane, Launch], Progress]) -> Callable[[RunpodLane, Launch], Machine]:
    """Create and follow until the pod runs."""

    def wait(lane: RunpodLane, launch: Launch) -> Machine:
        last = settled(lane, launch)
        assert isinstance(last, Granted), last
        return last.machine

    return wait
