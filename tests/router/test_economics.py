"""The arithmetic of widths against optimal schedules, a simulation of what hosts do, and published values."""

from __future__ import annotations

import heapq
import math
import random
import statistics
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.fakes.benches import axes, judged, make_bench, phase, single
from widelane.models.plan import NarrowBecause, NarrowKind
from widelane.models.verdict import PhaseVerdict, WidthRow
from widelane.router import schedule
from widelane.router.schedule import Reload
from widelane.router.spot import Spot, daly_interval, young_interval
from widelane.runner.host.slots import Slots

times = st.lists(st.integers(1, 12).map(float), min_size=1, max_size=7)
groups = st.integers(1, 4)


def _rows(verdict: PhaseVerdict) -> dict[int, WidthRow]:
    return {row.width: row for row in verdict.widths}


def _plain(**fields: Any) -> PhaseVerdict:
    given: dict[str, Any] = {"command": "run {x}", "outputs": (), "setup_minutes": 0.0, "gpu_hours": None}
    return judged(phase(**{**given, **fields}))


def _segments(hours: list[float]) -> tuple[tuple[int, float], ...]:
    return tuple((1, one) for one in hours)


def _optimum(hours: list[float], machines: int) -> float:
    """The shortest schedule, by trying every assignment."""
    best = math.inf
    for assigned in product(range(machines), repeat=len(hours)):
        loads = [0.0] * machines
        for one, machine in zip(hours, assigned, strict=True):
            loads[machine] += one
        best = min(best, max(loads))
    return best


def _hosted(hours: list[float], gpus: int, group: int, reload: Reload | None = None) -> float:
    """A host's queue, event by event: the first unit in line takes the lowest free slots when they are enough."""
    slots, queue, running, now = Slots(tuple(map(str, range(gpus)))), list(enumerate(hours)), [], 0.0
    seen: dict[int, int] = {}
    while queue or running:
        while queue and len(slots.free()) >= group:
            (index, length), taken = queue.pop(0), tuple(slots.free()[:group])
            lane = taken[0]
            if reload is not None:
                value = reload.value(index)
                length += reload.hours if seen.get(lane, value) != value else 0.0
                seen[lane] = value
            slots.take(taken, str(index))
            heapq.heappush(running, (now + length, taken))
        now, taken = heapq.heappop(running)
        slots.give_back(taken, True)
    return now


@settings(max_examples=80, deadline=None)
@given(times, groups)
def test_no_schedule_beats_the_lower_bound_and_pulling_keeps_to_its_upper_one(hours: list[float], count: int) -> None:
    segments = _segments(hours)
    best = _optimum(hours, count)
    pulled = schedule.run_hours(segments, count)
    assert schedule.lower_bound(segments, count) <= best + 1e-9
    assert best <= pulled + 1e-9
    assert pulled <= schedule.upper_bound(segments, count) + 1e-9
    assert pulled <= (2 - 1 / count) * best + 1e-9


@settings(max_examples=40, deadline=None)
@given(times, groups)
def test_longest_first_is_within_a_third_of_the_best(hours: list[float], count: int) -> None:
    pulled = schedule.run_hours(_segments(sorted(hours, reverse=True)), count)
    assert pulled <= (4 / 3 - 1 / (3 * count)) * _optimum(hours, count) + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 9).map(float), min_size=1, max_size=6), groups)
def test_the_bound_is_met_or_missed_by_every_order(hours: list[float], count: int) -> None:
    bound = schedule.lower_bound(_segments(hours), count)
    assert all(schedule.run_hours(_segments(list(order)), count) >= bound - 1e-9 for order in permutations(hours))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 8), st.sampled_from([0.25, 0.4, 1.5]))
def test_equal_units_take_whole_waves_which_is_the_best_there_is(count: int, machines: int, hours: float) -> None:
    run = schedule.run_hours(((count, hours),), machines)
    assert (
        run == schedule.lower_bound(((count, hours),), machines) == pytest.approx(math.ceil(count / machines) * hours)
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 90).map(float), min_size=2, max_size=30),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([1, 2, 4, 8]),
)
def test_wall_clock_is_what_a_host_takes_that_pulls_unit_by_unit(minutes: list[float], group: int, width: int) -> None:
    assume(width >= group)
    verdict = _plain(axes=axes(x=len(minutes)), unit_minutes=tuple(minutes), gpus_per_shard=group)
    row = _rows(verdict)[width]
    assert row.wall_hours == pytest.approx(_hosted(minutes, width, group) / 60, abs=1e-4)
    assert row.bound_hours <= row.wall_hours + 1e-4


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(1, 6), st.sampled_from([1, 2, 4, 8]), st.booleans(), st.integers(1, 40))
def test_an_axis_that_reloads_costs_what_it_costs_on_a_host(
    models: int, draws: int, width: int, outermost: bool, reload: int
) -> None:
    sizes = {"model": models, "draw": draws} if outermost else {"draw": draws, "model": models}
    verdict = judged(
        phase(
            axes=axes(**sizes),
            command="run {model} {draw}",
            outputs=(),
            gpu_hours=None,
            unit_minutes=10.0,
            setup_minutes=0.0,
            reload_minutes=(("model", float(reload)),),
        )
    )
    stride = draws if outermost else 1
    expected = _hosted([10.0] * (models * draws), width, 1, Reload(stride, models, float(reload)))
    assert _rows(verdict)[width].wall_hours == pytest.approx(expected / 60, abs=1e-4)


def test_the_example_with_a_model_that_reloads() -> None:
    # 2 models x 10 draws of 24 min on 8 GPUs: three waves, in which most GPUs go on to the second model once.
    fields: dict[str, Any] = {"reload_minutes": (("model", 8.0),), "width": 8}
    verdict = judged(phase(**fields))
    assert _rows(verdict)[8].wall_hours == pytest.approx((8 + 3 * 24 + 8) / 60, abs=1e-4)
    assert _rows(verdict)[1].wall_hours == pytest.approx((8 + 20 * 24 + 8) / 60, abs=1e-4)


def test_more_units_than_are_simulated_reload_as_often_as_they_can() -> None:
    assert schedule.changes(40_000, 8, Reload(20_000, 2, 1.0)) == 1
    assert schedule.changes(40_000, 8, Reload(1, 2, 1.0)) == 4_999
    assert schedule.changes(4, 8, Reload(1, 4, 1.0)) == 0
    assert schedule.changes(9, 1, Reload(9, 1, 1.0)) == 0


def test_the_sample_plan_has_the_derived_numbers_of_the_note() -> None:
    verdict = judged(phase(width=8))
    found = verdict.economics
    assert found is not None
    # U / (s + f) = 8 / (8/60) = 60 GPUs, of which 20 have a unit; (s + U + f) / (s + f) = 61.
    assert (found.work_hours, found.longest_unit_hours) == (8.0, 0.4)
    assert (found.saturation_width, found.speedup_cap) == (20, 61.0)
    divisible = judged(phase(axes=axes(model=2, draw_set=100), width=8)).economics
    assert divisible is not None
    assert divisible.saturation_width == 60
    row = _rows(verdict)[8]
    assert row.fill == pytest.approx(20 / 24, abs=1e-4)
    assert (row.binding, row.bound_hours) == ("waves", row.wall_hours)
    assert row.saves_minutes == pytest.approx((2.1333 - 1.3333) * 60, abs=0.05)


def test_sixteen_units_are_the_divisible_case_of_the_note() -> None:
    row = _rows(judged(phase(axes=axes(x=16), command="run {x}", outputs=(), width=8)))[8]
    assert row.wall_hours == pytest.approx(1.1333, abs=1e-3)
    assert row.efficiency == pytest.approx(0.88, abs=5e-3)
    assert (8 + 8 / 60) / row.wall_hours == pytest.approx(7.2, abs=0.05)


@pytest.mark.parametrize(("width", "fill"), [(8, 0.5625), (4, 0.75), (2, 0.9), (1, 1.0)])
def test_nine_units_fill_their_waves_as_in_the_note(width: int, fill: float) -> None:
    assert _rows(_plain(axes=axes(x=9), unit_minutes=60.0))[width].fill == fill


def test_no_width_is_faster_than_the_cap_says() -> None:
    verdict = _plain(axes=axes(x=64), unit_minutes=10.0, setup_minutes=30.0, tail_minutes=15.0)
    found, rows = verdict.economics, _rows(verdict)
    assert found is not None
    assert found.speedup_cap is not None
    assert all(rows[1].wall_hours / row.wall_hours <= found.speedup_cap for row in rows.values())


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.floats(1.0, 90.0), st.floats(1.0, 90.0), st.floats(0.0, 60.0))
def test_beyond_the_saturation_width_no_unit_is_left_or_less_than_half_of_the_time_is_work(
    units: int, minutes: float, setup: float, tail: float
) -> None:
    verdict = _plain(axes=axes(x=units), unit_minutes=minutes, setup_minutes=setup, tail_minutes=tail)
    found = verdict.economics
    assert found is not None
    assert found.saturation_width is not None
    for row in verdict.widths:
        if row.width > found.saturation_width + 1:
            assert row.efficiency <= 0.5 + 1e-3 or row.width > units


@pytest.mark.parametrize(
    ("fields", "width", "binding"),
    [
        ({"axes": axes(x=16), "unit_minutes": 60.0}, 8, "work"),
        ({"axes": axes(x=9), "unit_minutes": 60.0}, 8, "waves"),
        ({"axes": axes(x=4), "unit_minutes": (300.0, 10.0, 10.0, 10.0)}, 2, "longest_unit"),
        ({"axes": axes(x=4), "unit_minutes": 60.0}, 8, "units"),
        ({"axes": axes(x=8), "unit_minutes": 10.0, "setup_minutes": 20.0}, 8, "setup"),
        ({"axes": axes(x=8), "unit_minutes": 10.0, "tail_minutes": 20.0}, 8, "tail"),
        ({"axes": axes(x=4), "unit_minutes": 1.0, "reload_minutes": (("x", 9.0),)}, 1, "reload"),
        (
            {
                "axes": axes(x=8),
                "unit_minutes": 1.0,
                "narrow_because": NarrowBecause(kind=NarrowKind.RATE_LIMITED, calls=600, calls_per_minute=10),
            },
            8,
            "waiver",
        ),
        (
            {
                "axes": axes(x=8),
                "unit_minutes": 9.0,
                "narrow_because": NarrowBecause(kind=NarrowKind.LICENCE_SEATS, seats=2),
            },
            8,
            "waiver",
        ),
        ({"axes": None, "command": "run", "gpu_hours": 4.0}, 8, "command"),
        ({"axes": None, "command": "torchrun --nproc_per_node {gpus} x.py", "gpu_hours": 4.0}, 8, "work"),
    ],
)
def test_the_term_that_keeps_a_width_from_being_faster_is_named(
    fields: dict[str, Any], width: int, binding: str
) -> None:
    assert _rows(_plain(**fields))[width].binding == binding


def test_dealing_units_out_costs_what_pulling_saves() -> None:
    minutes = (180.0, 60.0, 180.0, 60.0)
    row = _rows(_plain(axes=axes(x=4), unit_minutes=minutes))[2]
    assert (row.wall_hours, row.static_hours) == (4.0, 6.0)
    even = _rows(_plain(axes=axes(x=16), unit_minutes=30.0))[8]
    assert even.static_hours == even.wall_hours
    assert _rows(judged(single()))[1].static_hours is None


def test_a_static_split_over_unequal_shards_loses_as_published() -> None:
    # Shares that spread by 10 %: the bound says 20 %, the exact mean of the largest of eight 14 %.
    many = tuple((1, 1.0 + 0.1 * math.sqrt(100) * (1 if i % 2 else -1) / 10) for i in range(800))
    assert schedule.spread(many) == pytest.approx(0.1, abs=1e-6)
    share = schedule.dealt_hours(tuple((1, 1.0 + 0.1 * (1 if i % 2 else -1)) for i in range(8)), 8)
    assert share == pytest.approx(1.204, abs=1e-3)
    rng = random.Random(7)
    exact = statistics.mean(max(rng.gauss(1.0, 0.1) for _ in range(8)) for _ in range(4000))
    assert exact == pytest.approx(1.142, abs=0.004)
    assert exact <= share


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0.5, 1.5), min_size=16, max_size=40), st.sampled_from([2, 4, 8]), st.randoms())
def test_the_expected_static_split_is_no_less_than_what_shuffles_give(
    hours: list[float], count: int, shuffle: Any
) -> None:
    dealt: list[float] = []
    for _ in range(60):
        shuffle.shuffle(hours)
        dealt.append(schedule.run_hours(_segments(hours), count, static=True))
    assert statistics.mean(dealt) <= schedule.dealt_hours(_segments(hours), count) * 1.02


def test_the_published_interval_between_checkpoints() -> None:
    # Daly 2006: M = 24 h, d = 5 min gives 117 min; Young's first order 120 min.
    assert round(daly_interval(5 / 60, 24.0) * 60) == 117
    assert young_interval(5 / 60, 24.0) == 2.0
    assert daly_interval(48.0, 24.0) == 24.0


@pytest.mark.parametrize(("write", "mean", "down"), [(1 / 60, 4.0, 0.3), (5 / 60, 24.0, 0.0), (0.2, 6.0, 1.0)])
def test_the_interval_loses_least_of_all(write: float, mean: float, down: float) -> None:
    spot, best = Spot(mean, down), daly_interval(write, mean)

    def expected(interval: float) -> float:
        hours = spot.checkpointed(100.0, interval, write)
        assert hours is not None
        return hours

    least = min(expected(best * share / 100) for share in range(20, 400, 2))
    assert expected(best) <= least * 1.001


def _preempted(hours: float, spot: Spot, rng: random.Random) -> float:
    """One life of a unit that starts again after each preemption."""
    now = 0.0
    while (lost := rng.expovariate(1 / spot.mean)) < hours:
        now += lost + spot.down
    return now + hours


def test_expected_hours_on_spot_are_the_mean_of_many_lives() -> None:
    spot, rng = Spot(2.0, 0.25), random.Random(3)
    exact = spot.repeated(1.0)
    assert exact is not None
    assert statistics.mean(_preempted(1.0, spot, rng) for _ in range(20_000)) == pytest.approx(exact, rel=0.02)


def test_waves_on_one_machine_take_the_mean_of_many_lives() -> None:
    # Eight GPUs of one machine stop together: each of three waves is one unit that starts again.
    bench = make_bench({"spot_mean_hours": 2.0, "fence_boot_seconds": 420})
    row = _rows(judged(phase(width=8), bench))[8]
    spot, rng = Spot(2.0, 0.25), random.Random(5)
    lives = [8 / 60 + sum(_preempted(0.4, spot, rng) for _ in range(3)) for _ in range(20_000)]
    assert row.spot_hours == pytest.approx(statistics.mean(lives), rel=0.02)


def test_work_that_starts_from_its_beginning_loses_more_than_work_that_resumes() -> None:
    resumed, again = judged(phase(width=1)), judged(phase(width=1, resumable=False))
    first, second = _rows(resumed)[1].spot_hours, _rows(again)[1].spot_hours
    assert first is not None
    assert second is not None
    assert first < second


def test_checkpoints_bring_the_loss_down() -> None:
    long = single(gpu_hours=12.0, resumable=True)
    kept = single(gpu_hours=12.0, checkpoint_minutes=60.0, checkpoint_write_minutes=5.0)
    without, with_them = _rows(judged(long))[1].spot_hours, _rows(judged(kept))[1].spot_hours
    assert without is not None
    assert with_them is not None
    assert with_them < without
    found = judged(kept, make_bench({"spot_mean_hours": 24.0})).economics
    assert found is not None
    assert found.checkpoint_minutes == pytest.approx(116.7)


def test_work_that_hardly_ever_ends_on_spot_has_no_expected_time() -> None:
    assert _rows(judged(single(gpu_hours=160.0)))[1].spot_hours is None


def test_without_an_estimate_there_are_no_economics() -> None:
    verdict = judged(phase(gpu_hours=None))
    assert (verdict.economics, verdict.widths) == (None, ())
