"""Wall clock, efficiency and stranded GPUs, and the width that is recommended."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.benches import AMPLE, PROJECT, axes, codes, errors, judged, make_bench, phase, quotas, single
from widelane.models.plan import Arm, NarrowBecause, NarrowKind, Needs
from widelane.models.verdict import PhaseVerdict


def _rows(verdict: PhaseVerdict) -> dict[int, Any]:
    return {row.width: row for row in verdict.widths}


def _plain(**fields: Any) -> PhaseVerdict:
    """Units along one axis, without set-up."""
    given: dict[str, Any] = {"command": "run {x}", "outputs": (), "setup_minutes": 0.0, "gpu_hours": 8.0}
    return judged(phase(**{**given, **fields}))


def test_the_sample_plan_has_the_numbers_of_the_design() -> None:
    verdict = judged(phase(width=8, min_width=2))
    rows = _rows(verdict)
    assert rows[1].wall_hours == pytest.approx(8.13, abs=0.005)
    assert rows[8].wall_hours == pytest.approx(1.33, abs=0.005)
    assert rows[8].efficiency == pytest.approx(0.75)
    assert (rows[8].waves, rows[8].shards, rows[8].stranded_gpus) == (3, 8, 0)
    assert (verdict.units, verdict.gpus_per_shard, verdict.min_width) == (20, 1, 2)
    assert (verdict.verdict, verdict.binding, verdict.recommended_width) == ("PASS", "asked", 8)


def test_when_nothing_is_asked_the_recommended_width_is_requested() -> None:
    verdict = judged(phase(width=None))
    assert (verdict.requested_width, verdict.recommended_width, verdict.binding) == (8, 8, "machines")


def test_times_are_quantised_by_units() -> None:
    rows = _rows(_plain(axes=axes(x=9), gpu_hours=9.0))
    assert {width: row.wall_hours for width, row in rows.items()} == {1: 9.0, 2: 5.0, 4: 3.0, 8: 2.0}
    assert rows[8].efficiency == pytest.approx(9 / 16, abs=1e-4)


def test_groups_divide_the_width_and_no_row_is_narrower_than_one() -> None:
    rows = _rows(_plain(axes=axes(x=10), gpu_hours=40.0, gpus_per_shard=4))
    assert {width: (row.shards, row.wall_hours) for width, row in rows.items()} == {4: (1, 10.0), 8: (2, 5.0)}
    assert rows[8].efficiency == 1.0


def test_gpus_without_a_unit_are_stranded() -> None:
    rows = _rows(_plain(axes=axes(x=3), gpu_hours=3.0))
    assert {width: row.stranded_gpus for width, row in rows.items()} == {1: 0, 2: 0, 4: 1, 8: 5}


def test_the_tail_is_paid_at_every_width() -> None:
    rows = _rows(_plain(axes=axes(x=8), tail_minutes=30.0, setup_minutes=6.0))
    assert {width: row.wall_hours for width, row in rows.items()} == {1: 8.6, 2: 4.6, 4: 2.6, 8: 1.6}


def test_unit_minutes_are_of_one_unit_on_its_group() -> None:
    rows = _rows(_plain(axes=axes(x=8), gpu_hours=None, unit_minutes=60.0, gpus_per_shard=2))
    assert {width: (row.wall_hours, row.efficiency) for width, row in rows.items()} == {
        2: (8.0, 1.0),
        4: (4.0, 1.0),
        8: (2.0, 1.0),
    }


def test_unequal_units_are_scheduled_in_their_order() -> None:
    minutes = (60.0, 60.0, 60.0, 180.0)
    rows = _rows(_plain(axes=axes(x=4), gpu_hours=None, unit_minutes=minutes))
    assert {width: row.wall_hours for width, row in rows.items()} == {1: 6.0, 2: 4.0, 4: 3.0, 8: 3.0}


def test_a_static_split_deals_its_units_out_before() -> None:
    minutes = (180.0, 60.0, 180.0, 60.0)
    split = {"command": "run --shard {shard} --of {shards}", "gpu_hours": None, "unit_minutes": minutes}
    assert _rows(_plain(axes=axes(x=4), **split))[2].wall_hours == 6.0
    assert _rows(_plain(axes=axes(x=4), gpu_hours=None, unit_minutes=minutes))[2].wall_hours == 4.0


def test_a_split_without_axes_divides_evenly() -> None:
    rows = _rows(_plain(axes=None, command="run --shard {shard} --of {shards}", gpu_hours=1.0))
    assert {width: row.wall_hours for width, row in rows.items()} == {1: 1.0, 2: 0.5, 4: 0.25, 8: 0.125}


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc_per_node {gpus} train.py",
        "python3 launch.py --ranks {gpus}",
        "accelerate launch train.py",
        "deepspeed train.py",
        "torchrun --nproc-per-node=gpu train.py",
    ],
)
def test_a_launcher_takes_every_gpu(command: str) -> None:
    rows = _rows(_plain(axes=None, command=command, gpu_hours=1.6))
    assert {width: row.wall_hours for width, row in rows.items()} == {1: 1.6, 2: 0.8, 4: 0.4, 8: 0.2}
    assert rows[8].efficiency == 1.0


def test_a_launcher_may_name_what_it_divides_in_axes_without_placeholders() -> None:
    verdict = _plain(axes=axes(row=600), command="python3 launch.py --ranks {gpus}", width=8)
    assert (errors(verdict), verdict.units) == ([], 1)


def test_work_that_does_not_shard_takes_the_same_time_at_every_width() -> None:
    verdict = judged(single(width=1))
    assert {row.wall_hours for row in verdict.widths} == {3.0}
    assert (verdict.requested_width, errors(verdict)) == (1, [])


def test_when_nothing_shards_narrow_is_right() -> None:
    asked = judged(single(width=1, gpu_hours=40.0))
    assert (asked.verdict, codes(asked), asked.recommended_width) == ("PASS", [], 1)
    unasked = judged(single(gpu_hours=40.0))
    assert (unasked.verdict, unasked.requested_width, unasked.binding) == ("PASS", 1, "command")


def test_a_plan_without_a_command_shards_by_its_axes() -> None:
    verdict = judged(phase(command=None, width=8))
    assert (verdict.verdict, verdict.units) == ("PASS", 20)


def test_arms_run_side_by_side() -> None:
    arms = (
        Arm(name="a", axes=axes(x=6), command="run a {x}", gpu_hours=6.0),
        Arm(name="b", axes=axes(x=2), command="run b {x}", gpu_hours=2.0),
    )
    verdict = judged(phase(axes=None, command=None, outputs=(), gpu_hours=None, setup_minutes=0.0, arms=arms, width=8))
    assert (verdict.units, _rows(verdict)[8].wall_hours, errors(verdict)) == (8, 1.0, [])


def test_arms_share_the_estimate_of_the_phase_when_they_have_none() -> None:
    arms = (Arm(name="a", command="run a"), Arm(name="b", command="run b"))
    verdict = judged(phase(axes=None, command=None, outputs=(), gpu_hours=4.0, setup_minutes=0.0, arms=arms))
    assert (_rows(verdict)[1].wall_hours, _rows(verdict)[2].wall_hours, verdict.requested_width) == (4.0, 2.0, 2)


@pytest.mark.parametrize(
    ("units", "minutes", "setup", "width", "binding"),
    [
        (64, 30.0, 0.0, 8, "machines"),
        (4, 30.0, 0.0, 4, "units"),
        (3, 30.0, 0.0, 4, "units"),
        (9, 30.0, 0.0, 8, "machines"),
        (8, 30.0, 120.0, 2, "efficiency"),
        (8, 2.0, 0.0, 2, "gain"),
        (1, 600.0, 0.0, 1, "command"),
        # A doubling pays when it saves five minutes exactly, and not when it saves a tenth of a second less.
        (2, 5.0, 0.0, 2, "units"),
        (2, 4.99, 0.0, 1, "gain"),
    ],
)
def test_the_default_width_doubles_while_that_pays(
    units: int, minutes: float, setup: float, width: int, binding: str
) -> None:
    verdict = _plain(axes=axes(x=units), gpu_hours=None, unit_minutes=minutes, setup_minutes=setup)
    assert (verdict.requested_width, verdict.binding) == (width, binding)


def test_the_default_gain_is_a_share_of_the_time_too() -> None:
    # From 1 to 2 saves 10 min of 100 exactly; with a longer tail it is less than a tenth.
    saves = {"axes": axes(x=2), "gpu_hours": None, "unit_minutes": 10.0}
    bench = make_bench({"min_efficiency": 0.0})
    pays = phase(command="run {x}", outputs=(), setup_minutes=0.0, tail_minutes=80.0, **saves)
    fails = phase(command="run {x}", outputs=(), setup_minutes=0.0, tail_minutes=80.1, **saves)
    assert judged(pays, bench).requested_width == 2
    assert judged(fails, bench).requested_width == 1


def test_the_default_width_starts_at_the_base_the_group_and_min_width() -> None:
    assert _plain(axes=axes(x=1), gpu_hours=1.0, min_width=3).requested_width == 4
    assert _plain(axes=axes(x=1), gpu_hours=1.0, gpus_per_shard=2).requested_width == 2
    assert judged(phase(intent="sweep-8g-a100", width=None)).requested_width == 8
    ft = judged(single(intent="ft-7b"))
    assert (ft.requested_width, ft.gpus_per_shard, errors(ft)) == (4, 4, [])


def test_the_recommended_width_is_one_that_holds_the_need() -> None:
    narrow = _plain(axes=axes(x=2), gpu_hours=0.1, needs=Needs(ram_gib=600.0))
    assert narrow.requested_width == 4


def test_quota_stops_the_recommendation_where_it_denies() -> None:
    listed = {**AMPLE, "A2_CPUS": (48.0, 0.0), "PREEMPTIBLE_NVIDIA_H100_GPUS": (8.0, 8.0)}
    snapshot = quotas(PROJECT, us_central1=listed)
    verdict = judged(phase(width=None), make_bench(quotas=snapshot))
    assert (verdict.requested_width, verdict.binding) == (4, "quota")


def test_quota_that_denies_only_the_middle_does_not_stop_it() -> None:
    listed = {**AMPLE, "A2_CPUS": (12.0, 0.0)}
    verdict = judged(phase(width=None), make_bench(quotas=quotas(PROJECT, us_central1=listed)))
    assert verdict.requested_width == 8
    assert {rung.machine_type for rung in verdict.ladder if rung.width == 8 and rung.admits == "yes"} == {
        "a3-highgpu-8g"
    }


@pytest.mark.parametrize(
    ("waiver", "width"),
    [
        (NarrowBecause(kind=NarrowKind.LICENCE_SEATS, seats=2), 2),
        (NarrowBecause(kind=NarrowKind.SHARED_STATE, path="cache.db"), 1),
        (NarrowBecause(kind=NarrowKind.ORDER_DEPENDENT), 1),
        # 1,200 calls at 10 a minute take two hours, however wide: four GPUs need two hours as well.
        (NarrowBecause(kind=NarrowKind.RATE_LIMITED, calls=1200, calls_per_minute=10), 4),
    ],
)
def test_a_waiver_caps_the_useful_width_by_its_number(waiver: NarrowBecause, width: int) -> None:
    fields: dict[str, Any] = {"axes": axes(x=32), "gpu_hours": 8.0, "narrow_because": waiver}
    capped = _plain(width=width, **fields)
    assert errors(capped) == []
    assert _plain(**fields).requested_width == width
    assert "too_wide" in errors(_plain(width=8, **fields))


def test_many_unequal_units_are_bounded_instead_of_simulated() -> None:
    minutes = tuple(1.0 + (i % 2) for i in range(20_002))
    row = _rows(_plain(axes=axes(x=20_002), gpu_hours=None, unit_minutes=minutes))[8]
    total = sum(minutes) / 60
    assert total / 8 <= row.wall_hours <= total / 8 + 2 / 60
