"""The run limit at the service is sized at the width that was got."""

from __future__ import annotations

import pytest

from tests.fakes.benches import axes, judged, make_bench, phase
from widelane.models.plan import Phase
from widelane.router import fence_seconds

POLICY = make_bench().policy


@pytest.mark.parametrize(
    ("width", "seconds"),
    [
        # (wall clock + 15 min) x 1.25: 1.3333 h at 8, 2.1333 h at 4 and 6, 8.1333 h at 1.
        (8, 7125),
        (16, 7125),
        (4, 10725),
        (6, 10725),
        (1, 37725),
    ],
)
def test_the_fence_is_wall_clock_with_boot_and_margin_at_the_realized_width(width: int, seconds: int) -> None:
    assert fence_seconds(judged(phase(width=8)), width, POLICY) == seconds


def test_the_fence_keeps_to_the_bounds_of_the_service() -> None:
    long = judged(phase(axes=axes(x=8), command="run {x}", outputs=(), gpu_hours=1200.0, width=8))
    assert fence_seconds(long, 8, POLICY) == 604800
    tiny = make_bench({"fence_boot_seconds": 0})
    short = judged(phase(axes=axes(x=8), command="run {x}", outputs=(), gpu_hours=0.01, setup_minutes=0.0), tiny)
    assert fence_seconds(short, 1, tiny.policy) == 600


def test_without_an_estimate_the_policy_says() -> None:
    assert fence_seconds(judged(phase(gpu_hours=None)), 8, POLICY) == 86400


def test_a_cpu_phase_has_the_fence_of_its_wall_clock() -> None:
    assert fence_seconds(judged(Phase(name="cpu", intent="cpu-mid", wall_minutes=60)), 0, POLICY) == 5625
