"""Launches and clocks for the tests of lanes."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from typing import Any

from widelane.lanes.protocol import Launch
from widelane.models.plan import ProvisioningModel
from widelane.models.quota import Admits
from widelane.models.verdict import Rung


def rung(
    machine_type: str = "a2-ultragpu-4g",
    width: int = 4,
    model: ProvisioningModel = ProvisioningModel.STANDARD,
    **more: Any,
) -> Rung:
    return Rung(
        lane=more.get("lane", "gcp"),
        machine_type=machine_type,
        gpu=more.get("gpu", "nvidia-a100-80gb" if width else ""),
        width=width,
        provisioning_model=model,
        zones=more.get("zones", ("us-central1-a",)),
        admits=Admits.UNKNOWN,
    )


def launch(**changes: Any) -> Launch:
    """A launch of a4x A100-80 on demand, changed in the named fields."""
    base = Launch(
        attempt_id="att-0001",
        run_id="run-0001",
        dispatch_id="dis-0001",
        dispatch_key="key-0001",
        name="wl-att-0001",
        request_id="00000000-0000-4000-8000-000000000001",
        rung=rung(),
        zone="us-central1-a",
        fence_seconds=7200,
        wait_seconds=0,
        store_url="file:///srv/store",
        spec_key="specs/dis-0001/att-0001.json",
        runner_sha256="ab" * 32,
    )
    return dataclasses.replace(base, **changes)


class SetClock:
    """A clock that stands until it is moved."""

    rate = 1.0

    def __init__(self, now: datetime = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)) -> None:
        self._start = self._now = now

    def now(self) -> datetime:
        return self._now

    def elapsed(self) -> float:
        return (self._now - self._start).total_seconds()

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
