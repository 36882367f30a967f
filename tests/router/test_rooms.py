"""Ladders fitted to what the machines of lanes without tables hold."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.benches import judged, make_bench, phase, single, words
from widelane.facts import load_policy
from widelane.models.plan import Pin
from widelane.models.room import LaneRoom
from widelane.models.verdict import PhaseVerdict, Rung
from widelane.router import fit_rooms

POLICY = load_policy()
LANES = ("gcp", "slurm.fir", "runpod")


def asked(lanes: tuple[str, ...] = LANES, **fields: object) -> PhaseVerdict:
    return judged(phase(**fields), make_bench(lanes=lanes))


def fitted(verdict: PhaseVerdict, **room: int | None) -> list[str]:
    rooms = {"slurm.fir": LaneRoom(**room)}
    return [word for word in words(fit_rooms(verdict.ladder, rooms, verdict, POLICY)) if "slurm" in word]


def test_a_cluster_is_asked_from_the_requested_width_down() -> None:
    assert fitted(asked(width=8), gpus=8) == ["slurm.fir 8", "slurm.fir 4", "slurm.fir 2", "slurm.fir 1"]
    assert fitted(asked(width=2), gpus=8) == ["slurm.fir 2", "slurm.fir 1"]


def test_it_starts_at_what_the_largest_node_holds() -> None:
    assert fitted(asked(width=8), gpus=4)[0] == "slurm.fir 4"
    assert fitted(asked(width=8), gpus=6)[0] == "slurm.fir 4"


def test_it_never_goes_below_the_least_width_or_apart_from_the_group() -> None:
    assert fitted(asked(width=8, min_width=4), gpus=8) == ["slurm.fir 8", "slurm.fir 4"]
    assert fitted(asked(width=8, min_width=8), gpus=4) == []
    assert fitted(asked(width=8, gpus_per_shard=2), gpus=8) == ["slurm.fir 8", "slurm.fir 4", "slurm.fir 2"]


def test_a_width_at_which_the_work_takes_too_long_is_left_out() -> None:
    verdict = asked(width=8)
    hours = {row.width: row.wall_hours for row in verdict.widths}
    assert hours[4] < 3 < hours[2]
    assert fitted(verdict, gpus=8, seconds=3 * 3600) == ["slurm.fir 8", "slurm.fir 4"]
    assert fitted(verdict, gpus=8, seconds=600) == []


def test_what_is_unknown_is_asked_for_as_it_was() -> None:
    assert fitted(asked(width=8), gpus=None) == ["slurm.fir 8"]
    assert fitted(asked(width=8), gpus=None, seconds=600) == []


def test_without_an_estimate_the_policy_s_widths_are_tried() -> None:
    verdict = judged(single(gpu_hours=None, width=1, pin=Pin(lane="slurm", reason="test")), make_bench(lanes=LANES))
    assert not verdict.widths
    assert fitted(verdict, gpus=8, seconds=60) == ["slurm.fir 1"]


def test_other_lanes_stay_as_they_are() -> None:
    verdict = asked(width=8)
    kept = fit_rooms(verdict.ladder, {"slurm.fir": LaneRoom(gpus=2)}, verdict, POLICY)
    assert [rung for rung in kept if rung.lane != "slurm.fir"] == [r for r in verdict.ladder if r.lane != "slurm.fir"]


def test_a_plan_is_judged_by_what_the_configuration_says_of_a_cluster() -> None:
    rooms = {"slurm.fir": LaneRoom(gpus=4, seconds=3 * 3600)}
    ladder = judged(phase(width=8), make_bench(lanes=LANES, rooms=rooms)).ladder
    assert [word for word in words(ladder) if "slurm" in word] == ["slurm.fir 4"]
    assert words(ladder)[-1].startswith("runpod")


@given(
    gpus=st.none() | st.integers(0, 16),
    seconds=st.none() | st.integers(60, 10**6),
    width=st.sampled_from([1, 2, 4, 8]),
    least=st.sampled_from([1, 2, 4]),
)
def test_fitting_keeps_the_order_of_lanes_and_never_widens(
    gpus: int | None, seconds: int | None, width: int, least: int
) -> None:
    verdict = asked(width=width, min_width=min(least, width))
    room = {"slurm.fir": LaneRoom(gpus=gpus, seconds=seconds)}
    once = fit_rooms(verdict.ladder, room, verdict, POLICY)
    lanes = [rung.lane for rung in once]
    assert lanes == sorted(lanes, key=LANES.index)
    mine: list[Rung] = [rung for rung in once if rung.lane == "slurm.fir"]
    widths = [rung.width for rung in mine]
    assert widths == sorted(set(widths), reverse=True)
    assert all(verdict.min_width <= rung.width <= min(width, 16 if gpus is None else gpus) for rung in mine)
    assert fit_rooms(once, room, verdict, POLICY) == once
