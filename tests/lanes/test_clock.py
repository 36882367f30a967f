"""The clock of a simulated cloud, as lanes keep it."""

from __future__ import annotations

from datetime import timedelta

from widelane.lanes.clock import RemoteClock, SystemClock
from widelane.simcloud.client import SimEndpoint, call


class Ticks:
    """Monotonic seconds that a test sets."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_a_simulation_that_is_put_forward_is_followed(cloud: SimEndpoint) -> None:
    clock = RemoteClock(cloud.url, fresh_seconds=0.0)
    before, began = clock.elapsed(), clock.now()
    call(cloud.url, "POST", "/sim/advance", {"seconds": 5000})
    assert clock.elapsed() >= before + 5000
    assert clock.now() >= began + timedelta(seconds=5000)
    assert clock.rate == 60.0


def test_between_readings_time_is_extrapolated_at_the_cloud_s_rate(cloud: SimEndpoint) -> None:
    ticks = Ticks()
    clock = RemoteClock(cloud.url, fresh_seconds=1e9, monotonic=ticks)
    before, began = clock.elapsed(), clock.now()
    ticks.seconds += 2.0
    assert clock.elapsed() == before + 120.0
    assert clock.now() == began + timedelta(seconds=120)


def test_a_cloud_that_does_not_answer_leaves_time_going_on() -> None:
    ticks = Ticks()
    clock = RemoteClock("http://127.0.0.1:9", monotonic=ticks)
    before = clock.elapsed()
    ticks.seconds += 3.0
    assert (clock.elapsed() - before, clock.rate) == (3.0, 1.0)


def test_the_clock_of_this_machine_goes_forward() -> None:
    clock = SystemClock()
    assert clock.rate == 1.0
    assert clock.elapsed() <= clock.elapsed()
    assert clock.now().utcoffset() == timedelta(0)
