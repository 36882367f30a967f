"""What changes from one plan to another, with the most that a paid lane may be held for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.benches import axes, make_bench, parsed, phase, single
from widelane.models.difference import PlanDifference
from widelane.models.plan import Phase, Pin
from widelane.router import Bench, compare, judge

API = Phase(name="judge", gpus=0, after=("generate",), wall_minutes=40.0, command="python judge.py")


def _diff(old: tuple[Phase, ...], new: tuple[Phase, ...], bench: Bench | None = None) -> PlanDifference:
    bench = bench or make_bench(lanes=("gcp",))
    first, second = (parsed(*phases) for phases in (old, new))
    return compare((first.plan, judge(first, bench)), (second.plan, judge(second, bench)), bench.policy)


def test_a_wider_request_shows_what_it_saves_and_holds() -> None:
    found = _diff((phase(width=2),), (phase(width=8),))
    (one,) = found.phases
    assert one.before is not None
    assert one.after is not None
    assert one.changed == ("verdict", "width", "wall_hours", "gpu_hours", "rungs")
    assert (one.before.width, one.before.wall_hours, one.before.gpu_hours) == (2, 4.1333, 8.2666)
    assert (one.after.width, one.after.wall_hours, one.after.gpu_hours) == (8, 1.3333, 10.6664)
    assert one.after.rungs[:3] == (
        "gcp FLEX_START a2-ultragpu-8g 8",
        "gcp FLEX_START a3-highgpu-8g 8",
        "gcp STANDARD a2-ultragpu-8g 8",
    )
    assert one.after.rungs[-len(one.before.rungs) :] == one.before.rungs
    assert (found.before.verdict, found.after.verdict) == ("REVISE", "PASS")


def test_phases_are_found_by_name_and_those_that_are_gone_come_last() -> None:
    found = _diff((phase(width=8), API), (single(name="fit"), phase(width=8)))
    assert [(one.name, one.before is None, one.after is None, one.changed) for one in found.phases] == [
        ("fit", True, False, ()),
        ("generate", False, False, ()),
        ("judge", False, True, ()),
    ]


def test_phases_that_wait_add_up_and_the_others_run_side_by_side() -> None:
    side = single(name="fit", gpu_hours=1.5)
    found = _diff((phase(width=8), API), (phase(width=8), API, side, single(name="last", after=("fit", "judge"))))
    assert found.before.wall_hours == pytest.approx(1.3333 + 40 / 60, abs=1e-3)
    assert found.after.wall_hours == pytest.approx(1.3333 + 40 / 60 + 3.0, abs=1e-3)
    assert found.before.gpu_hours == 10.6664
    assert found.after.gpu_hours == pytest.approx(10.6664 + 1.5 + 3.0)


@pytest.mark.parametrize(
    ("lanes", "policy", "paid"),
    [
        (("gcp",), {}, 0.0),
        (("gcp", "slurm.fir"), {}, 0.0),
        (("gcp", "runpod"), {}, 10.6664),
        (("gcp", "runpod"), {"last_resort_width": "base"}, 8.1333),
        (("gcp", "slurm.fir", "runpod"), {"paid_lanes": ["slurm", "runpod"]}, 10.6664),
    ],
)
def test_the_worst_of_a_paid_lane_is_its_widest_rung_held_to_the_end(
    lanes: tuple[str, ...], policy: dict[str, Any], paid: float
) -> None:
    found = _diff((phase(width=8), API), (), make_bench(policy, lanes=lanes))
    assert found.before.paid_gpu_hours == paid
    assert (found.after.paid_gpu_hours, found.after.wall_hours, found.after.verdict) == (0.0, 0.0, "PASS")


def test_a_pin_takes_the_paid_lane_away() -> None:
    bench = make_bench(lanes=("gcp", "runpod"))
    found = _diff((phase(width=8),), (phase(width=8, pin=Pin(lane="gcp", reason="no card")),), bench)
    assert found.phases[0].changed == ("paid_gpu_hours", "rungs")
    assert (found.before.paid_gpu_hours, found.after.paid_gpu_hours) == (10.6664, 0.0)


def test_what_is_not_known_is_no_number() -> None:
    unknown = phase(gpu_hours=None, width=8)
    found = _diff((unknown, API), (phase(width=8), API), make_bench(lanes=("gcp", "runpod")))
    assert (found.before.wall_hours, found.before.gpu_hours, found.before.paid_gpu_hours) == (None, None, None)
    assert found.after.wall_hours == 2.0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from([1, 2, 4, 8])), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from([1, 2, 4, 8])), min_size=1, max_size=4),
)
def test_a_difference_seen_from_the_other_side_is_the_same(
    old: list[tuple[int, int]], new: list[tuple[int, int]]
) -> None:
    def phases(rows: list[tuple[int, int]]) -> tuple[Phase, ...]:
        return tuple(
            phase(name=f"p{i}", axes=axes(x=units), command="run {x}", outputs=(), width=width)
            for i, (units, width) in enumerate(rows)
        )

    there, back = _diff(phases(old), phases(new)), _diff(phases(new), phases(old))
    assert (there.before, there.after) == (back.after, back.before)
    assert {one.name: (one.before, one.after) for one in there.phases} == {
        one.name: (one.after, one.before) for one in back.phases
    }
    assert all(not one.changed for one in _diff(phases(old), phases(old)).phases)
