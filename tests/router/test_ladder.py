"""Ladders, written by hand from the design's table."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.benches import axes, codes, errors, finding, judged, make_bench, phase, single, words
from widelane import facts, plan
from widelane.errors import PlanError
from widelane.models.plan import Arm, Needs, Phase, Pin, ProvisioningModel
from widelane.router import Bench
from widelane.router.ladder import legal_widths

CATALOG = facts.catalog()
BENCHES: dict[tuple[str, ...], Bench] = {}

ONE_LONG = ["flex a2-ultragpu-1g", "od a2-ultragpu-1g", "od a2-highgpu-1g"]
ONE_SHORT = [
    "spot a2-ultragpu-1g",
    "spot a2-highgpu-1g",
    "flex a2-ultragpu-1g",
    "od a2-ultragpu-1g",
    "od a2-highgpu-1g",
]
TWO_LONG = ["flex a2-ultragpu-2g", "od a2-ultragpu-2g"]
TWO_SHORT = ["spot a2-ultragpu-2g", "flex a2-ultragpu-2g", "od a2-ultragpu-2g"]
FOUR_LONG = ["flex a2-ultragpu-4g", "od a2-ultragpu-4g"]
FOUR_SHORT = ["spot a2-ultragpu-4g", "flex a2-ultragpu-4g", "od a2-ultragpu-4g"]
EIGHT_LONG = ["flex a2-ultragpu-8g", "flex a3-highgpu-8g", "od a2-ultragpu-8g"]
EIGHT_SHORT = [
    "spot a2-ultragpu-8g",
    "spot a3-highgpu-8g",
    "flex a2-ultragpu-8g",
    "flex a3-highgpu-8g",
    "od a2-ultragpu-8g",
]
L4_LONG = ["flex g2-standard-4", "od g2-standard-4", "od a2-highgpu-1g"]
L4_SHORT = [
    "spot g2-standard-4",
    "spot a2-highgpu-1g",
    "flex g2-standard-4",
    "od g2-standard-4",
    "od a2-highgpu-1g",
]

SWEEP_LONG = ["flex a2-ultragpu-8g", "od a2-ultragpu-8g"]
SWEEP_SHORT = ["spot a2-ultragpu-8g", "flex a2-ultragpu-8g", "od a2-ultragpu-8g"]

GOLDEN: list[tuple[str, int, list[str], list[str]]] = [
    # intent, width, rungs on Google Cloud of long work, of short work
    ("debug", 1, L4_LONG, L4_SHORT),
    ("debug", 2, TWO_LONG + L4_LONG, TWO_SHORT + L4_SHORT),
    ("debug", 4, FOUR_LONG + TWO_LONG + L4_LONG, FOUR_SHORT + TWO_SHORT + L4_SHORT),
    ("debug", 8, EIGHT_LONG + FOUR_LONG + TWO_LONG + L4_LONG, EIGHT_SHORT + FOUR_SHORT + TWO_SHORT + L4_SHORT),
    ("eval", 1, L4_LONG, L4_SHORT),
    ("eval", 2, TWO_LONG + L4_LONG, TWO_SHORT + L4_SHORT),
    ("eval", 4, FOUR_LONG + TWO_LONG + L4_LONG, FOUR_SHORT + TWO_SHORT + L4_SHORT),
    ("eval", 8, EIGHT_LONG + FOUR_LONG + TWO_LONG + L4_LONG, EIGHT_SHORT + FOUR_SHORT + TWO_SHORT + L4_SHORT),
    ("capture-7b", 1, ONE_LONG, ONE_SHORT),
    ("capture-7b", 2, TWO_LONG + ONE_LONG, TWO_SHORT + ONE_SHORT),
    ("capture-7b", 4, FOUR_LONG + TWO_LONG + ONE_LONG, FOUR_SHORT + TWO_SHORT + ONE_SHORT),
    ("capture-7b", 8, EIGHT_LONG + FOUR_LONG + TWO_LONG + ONE_LONG, EIGHT_SHORT + FOUR_SHORT + TWO_SHORT + ONE_SHORT),
    ("lora-7b", 1, ONE_LONG, ONE_SHORT),
    ("lora-7b", 2, TWO_LONG + ONE_LONG, TWO_SHORT + ONE_SHORT),
    ("lora-7b", 4, FOUR_LONG + TWO_LONG + ONE_LONG, FOUR_SHORT + TWO_SHORT + ONE_SHORT),
    ("lora-7b", 8, EIGHT_LONG + FOUR_LONG + TWO_LONG + ONE_LONG, EIGHT_SHORT + FOUR_SHORT + TWO_SHORT + ONE_SHORT),
    ("ft-7b", 4, FOUR_LONG, FOUR_SHORT),
    ("ft-7b", 8, EIGHT_LONG + FOUR_LONG, EIGHT_SHORT + FOUR_SHORT),
    ("sweep-8g-a100", 2, TWO_LONG, TWO_SHORT),
    ("sweep-8g-a100", 4, FOUR_LONG + TWO_LONG, FOUR_SHORT + TWO_SHORT),
    ("sweep-8g-a100", 8, SWEEP_LONG + FOUR_LONG + TWO_LONG, SWEEP_SHORT + FOUR_SHORT + TWO_SHORT),
    ("sweep-8g-h100", 8, ["flex a3-highgpu-8g"], ["spot a3-highgpu-8g", "flex a3-highgpu-8g"]),
    ("inf-70b", 8, [], []),
    ("ft-70b", 8, [], []),
]

LANE_SETS: list[tuple[tuple[str, ...], list[str]]] = [
    # configured lanes in any order, and in which order they are walked
    (("gcp",), ["gcp"]),
    (("local", "gcp"), ["gcp"]),
    (("runpod", "gcp"), ["gcp", "runpod"]),
    (("runpod", "slurm.fir", "gcp"), ["gcp", "slurm.fir", "runpod"]),
    (("ssh.box", "gcp", "slurm.fir", "runpod", "slurm.nibi"), ["gcp", "slurm.fir", "slurm.nibi", "ssh.box", "runpod"]),
    (("runpod", "slurm.fir"), ["slurm.fir", "runpod"]),
    (("ssh.box",), ["ssh.box"]),
    (("runpod",), ["runpod"]),
]


def _asks(intent: str, width: int, *, short: bool, **fields: Any) -> Phase:
    return phase(intent=intent, width=width, gpu_hours=64.0, spot_tolerant=short, **fields)


@pytest.mark.parametrize(("lanes", "walked"), LANE_SETS, ids="-".join)
@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_ladder_is_that_of_the_table(
    row: tuple[str, int, list[str], list[str]], lanes: tuple[str, ...], walked: list[str]
) -> None:
    intent, width, *cloud = row
    bench = BENCHES.setdefault(lanes, make_bench(lanes=lanes))
    for length, rungs in zip(("long", "short"), cloud, strict=True):
        verdict = judged(_asks(intent, width, short=length == "short"), bench)
        expected = [rung for lane in walked for rung in (rungs if lane == "gcp" else [f"{lane} {width}"])]
        assert (verdict.length, words(verdict.ladder)) == (length, expected)


def test_every_intent_and_width_is_in_the_table() -> None:
    intents = make_bench().intents.values()
    gpu = {(i.name, w) for i in intents if i.base_gpus for w in legal_widths(make_bench(), i)}
    assert {(intent, width) for intent, width, _, _ in GOLDEN} == gpu


@pytest.mark.parametrize("lanes", [("gcp",), ("runpod", "slurm.fir", "gcp"), ("slurm.fir",)])
def test_every_way_to_ask_for_eight_gpus_degrades_alike(lanes: tuple[str, ...]) -> None:
    bench = make_bench(lanes=lanes)
    asked = judged(_asks("capture-7b", 8, short=False), bench)
    unasked = judged(_asks("capture-7b", 8, short=False).model_copy(update={"width": None}), bench)
    units = _asks("capture-7b", 8, short=False, axes=axes(x=80), command="run {x}", outputs=())
    launched = _asks(
        "capture-7b", 8, short=False, axes=None, command="torchrun --nproc_per_node {gpus} x.py", outputs=()
    )
    split = _asks("capture-7b", 8, short=False, axes=None, command="run {shard} {shards}", outputs=("{shard}",))
    armed = _asks(
        "capture-7b", 8, short=False, command=None, outputs=(), arms=(Arm(name="a", command="run {model} {draw_set}"),)
    )
    for other in (unasked, *(judged(one, bench) for one in (units, launched, split, armed))):
        assert (other.requested_width, words(other.ladder)) == (8, words(asked.ladder))
    swept = judged(_asks("sweep-8g-a100", 8, short=False), bench)
    assert [r.width for r in swept.ladder if r.lane == "gcp" and r.width < 8] == [
        r.width for r in asked.ladder if r.lane == "gcp" and 1 < r.width < 8
    ]


@pytest.mark.parametrize(
    ("intent", "rungs"),
    [
        ("cpu-small", ["od e2-standard-2"]),
        ("cpu-mid", ["od e2-standard-8"]),
        ("cpu-bigmem", ["od n2-highmem-16"]),
    ],
)
def test_cpu_work_of_unknown_length_is_on_demand(intent: str, rungs: list[str]) -> None:
    verdict = judged(Phase(name="cpu", intent=intent, command="python stats.py"))
    assert words(verdict.ladder) == rungs
    assert (verdict.requested_width, verdict.recommended_width, verdict.min_width) == (0, 0, 0)


@pytest.mark.parametrize(
    ("intent", "rungs"),
    [
        ("cpu-small", ["spot e2-standard-2", "od e2-standard-2"]),
        ("cpu-mid", ["spot e2-standard-8", "od e2-standard-8"]),
        ("cpu-bigmem", ["od n2-highmem-16"]),
    ],
)
def test_short_cpu_work_leads_with_spot_where_it_may(intent: str, rungs: list[str]) -> None:
    verdict = judged(Phase(name="cpu", intent=intent, wall_minutes=120, command="python stats.py"))
    assert words(verdict.ladder) == rungs


@pytest.mark.parametrize("fields", [{}, {"intent": "eval"}, {"wall_minutes": 600.0}])
def test_a_phase_without_gpu_runs_on_the_local_lane(fields: dict[str, Any]) -> None:
    verdict = judged(Phase(name="judge", gpus=0, command="python judge.py", **fields), make_bench(lanes=("gcp",)))
    assert [(rung.lane, rung.width) for rung in verdict.ladder] == [("local", 0)]
    assert (verdict.requested_width, verdict.widths == ()) == (0, "wall_minutes" not in fields)


def test_seventy_b_work_has_no_machine_on_google_cloud() -> None:
    verdict = judged(single(intent="ft-70b", width=8))
    assert verdict.ladder == ()
    assert "Google Cloud has no machine for ft-70b" in finding(verdict, "does_not_fit").message


def test_seventy_b_work_goes_to_the_lanes_that_are_configured() -> None:
    verdict = judged(single(intent="inf-70b", width=8), make_bench(lanes=("runpod", "slurm.fir", "gcp")))
    assert words(verdict.ladder) == ["slurm.fir 8", "runpod 8"]
    assert errors(verdict) == []


def test_zones_are_those_of_the_region_in_file_order() -> None:
    first = judged(_asks("capture-7b", 8, short=False)).ladder
    assert first[0].zones == ("us-central1-a", "us-central1-c")
    assert first[1].zones == ("us-central1-a", "us-central1-b", "us-central1-c")
    assert first[-1].zones == ("us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f")


def test_regions_filter_zones_and_drop_machines_that_are_not_offered() -> None:
    both = judged(_asks("capture-7b", 8, short=False), make_bench(regions=("us-east5", "us-central1"))).ladder
    assert both[0].zones == ("us-central1-a", "us-central1-c", "us-east5-a", "us-east5-b")
    east1 = judged(_asks("capture-7b", 1, short=False), make_bench(regions=("us-east1",)))
    assert words(east1.ladder) == ["od a2-highgpu-1g"]


def test_a_width_that_the_region_does_not_offer_is_refused_with_the_widths_that_it_does() -> None:
    verdict = judged(_asks("capture-7b", 8, short=False), make_bench(regions=("us-east1",)))
    found = finding(verdict, "does_not_fit")
    assert "a2-ultragpu-8g is not offered in us-east1" in found.message
    assert found.fix.startswith("Ask for width 1,")
    assert verdict.recommended_width == 1


@pytest.mark.parametrize(
    ("peak", "rungs"),
    [
        (38.0, ONE_LONG),
        (38.1, ["flex a2-ultragpu-1g", "od a2-ultragpu-1g"]),
        (76.0, ["flex a2-ultragpu-1g", "od a2-ultragpu-1g"]),
        (10.0, ONE_LONG),
    ],
)
def test_the_small_card_is_kept_up_to_its_usable_38_gib(peak: float, rungs: list[str]) -> None:
    one = _asks("capture-7b", 1, short=False, needs=Needs(gpu_mem_gib=peak))
    assert words(judged(one).ladder) == rungs


def test_a_peak_that_no_card_holds_does_not_fit() -> None:
    verdict = judged(_asks("capture-7b", 8, short=False, needs=Needs(gpu_mem_gib=77.0)))
    assert verdict.ladder == ()
    assert "a2-ultragpu-8g has 76 GiB usable of 80 GiB a GPU" in finding(verdict, "does_not_fit").message


def test_memory_of_the_host_drops_the_narrow_machines() -> None:
    one = _asks("capture-7b", 8, short=False, needs=Needs(ram_gib=600.0))
    assert words(judged(one).ladder) == EIGHT_LONG + FOUR_LONG
    narrow = judged(_asks("capture-7b", 2, short=False, needs=Needs(ram_gib=600.0)))
    assert finding(narrow, "does_not_fit").fix.startswith("Ask for width 4, 8,")
    assert narrow.recommended_width in (4, 8)


def test_an_l4_machine_with_enough_memory_is_taken() -> None:
    one = _asks("eval", 1, short=False, needs=Needs(ram_gib=60.0))
    assert words(judged(one).ladder)[:2] == ["flex g2-standard-16", "od g2-standard-16"]


def test_eval_that_outgrows_the_l4_starts_with_the_a100_40() -> None:
    assert words(judged(_asks("eval", 1, short=False, needs=Needs(gpu_mem_gib=30.0))).ladder) == ["od a2-highgpu-1g"]
    beyond = judged(_asks("eval", 1, short=False, needs=Needs(gpu_mem_gib=60.0)))
    assert finding(beyond, "does_not_fit").fix.startswith("Ask for width 2, 4, 8,")


def test_a_disk_larger_than_any_does_not_fit() -> None:
    fits = judged(_asks("capture-7b", 1, short=False, needs=Needs(disk_gib=65536.0)))
    too_large = judged(_asks("capture-7b", 1, short=False, needs=Needs(disk_gib=65537.0)))
    assert (codes(fits).count("does_not_fit"), codes(too_large).count("does_not_fit")) == (0, 1)


@pytest.mark.parametrize(
    ("min_width", "tail"), [(None, "a2-highgpu-1g"), (1, "a2-highgpu-1g"), (2, "a2-ultragpu-2g"), (3, "a2-ultragpu-4g")]
)
def test_nothing_below_min_width_is_a_rung(min_width: int | None, tail: str) -> None:
    ladder = judged(_asks("capture-7b", 8, short=False, min_width=min_width)).ladder
    assert ladder[-1].machine_type == tail


def test_a_sweep_that_needs_its_width_says_so_with_min_width() -> None:
    ladder = judged(_asks("sweep-8g-a100", 8, short=False, min_width=8)).ladder
    assert words(ladder) == ["flex a2-ultragpu-8g", "od a2-ultragpu-8g"]


def test_no_intent_degrades_below_its_floor_whatever_min_width_says() -> None:
    assert judged(_asks("ft-7b", 8, short=False, min_width=1)).ladder[-1].width == 4


def test_rungs_that_hold_no_group_are_left_out() -> None:
    ladder = judged(_asks("capture-7b", 8, short=False, gpus_per_shard=4)).ladder
    assert words(ladder) == EIGHT_LONG + FOUR_LONG


def test_a_pin_keeps_the_rungs_of_its_lane() -> None:
    bench = make_bench(lanes=("gcp", "slurm", "runpod"))
    pinned = _asks("capture-7b", 8, short=False, pin=Pin(lane="gcp", reason="the data is there"))
    assert words(judged(pinned, bench).ladder) == EIGHT_LONG + FOUR_LONG + TWO_LONG + ONE_LONG
    other = _asks("capture-7b", 8, short=False, pin=Pin(lane="slurm", reason="the data is there"))
    assert words(judged(other, bench).ladder) == ["slurm 8"]


def test_a_pinned_model_is_walked_at_every_width_whatever_the_length() -> None:
    pinned = _asks("capture-7b", 8, short=False, pin=Pin(provisioning_model=ProvisioningModel.SPOT, reason="cheap"))
    assert words(judged(pinned, make_bench(lanes=("gcp", "slurm"))).ladder) == [
        "spot a2-ultragpu-8g",
        "spot a3-highgpu-8g",
        "spot a2-ultragpu-4g",
        "spot a2-ultragpu-2g",
        "spot a2-ultragpu-1g",
        "spot a2-highgpu-1g",
    ]


def test_a_pinned_zone_is_the_only_one_even_outside_the_regions() -> None:
    pinned = _asks("capture-7b", 8, short=False, pin=Pin(zone="us-east5-a", reason="the bucket is there"))
    ladder = judged(pinned).ladder
    assert {rung.zones for rung in ladder} == {("us-east5-a",)}
    assert words(ladder)[0] == "flex a2-ultragpu-8g"


def test_a_pin_to_a_lane_that_is_not_configured_leaves_nothing() -> None:
    pinned = _asks("capture-7b", 8, short=False, pin=Pin(lane="slurm", reason="habit"))
    verdict = judged(pinned, make_bench(lanes=("gcp",)))
    assert verdict.ladder == ()
    assert "the pin leaves no lane (configured: gcp)" in finding(verdict, "does_not_fit").message


def test_a_model_that_the_machine_is_not_bought_by_leaves_nothing() -> None:
    pin = Pin(provisioning_model=ProvisioningModel.STANDARD, reason="no interruption")
    verdict = judged(_asks("sweep-8g-h100", 8, short=False, pin=pin))
    assert "a3-highgpu-8g is not bought as STANDARD" in finding(verdict, "does_not_fit").message


def test_a_bench_forgets_what_it_remembers_before_it_grows_large() -> None:
    bench = make_bench()
    for peak in range(1200):
        judged(_asks("capture-7b", 8, short=False, needs=Needs(ram_gib=100 + peak / 1000)), bench)
    assert len(bench.rungs) + len(bench.notes) < 11_000
    assert words(judged(_asks("capture-7b", 1, short=False), bench).ladder) == ONE_LONG


def test_other_lanes_follow_in_the_order_of_the_policy() -> None:
    lanes = ("runpod", "local", "ssh.box", "slurm.nibi", "slurm.fir", "gcp")
    ladder = words(judged(_asks("capture-7b", 4, short=False), make_bench(lanes=lanes)).ladder)
    assert ladder == FOUR_LONG + TWO_LONG + ONE_LONG + ["slurm.nibi 4", "slurm.fir 4", "ssh.box 4", "runpod 4"]


def test_another_policy_gives_another_order() -> None:
    bench = make_bench({"lane_order": ["slurm", "gcp", "runpod"]}, lanes=("gcp", "slurm"))
    assert words(judged(_asks("capture-7b", 1, short=False), bench).ladder) == ["slurm 1", *ONE_LONG]


def test_the_last_resort_may_be_held_to_the_base_width() -> None:
    bench = make_bench({"last_resort_width": "base"}, lanes=("gcp", "slurm", "runpod"))
    assert words(judged(_asks("ft-7b", 8, short=False), bench).ladder)[-2:] == ["slurm 8", "runpod 4"]


A100S = ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe")


@pytest.mark.parametrize(
    ("peak", "gpus"),
    [
        (20.0, ("NVIDIA L4", *A100S, "NVIDIA H100 80GB HBM3", "NVIDIA H200")),
        (76.0, (*A100S, "NVIDIA H100 80GB HBM3", "NVIDIA H200")),
        (100.0, ("NVIDIA H200",)),
    ],
)
def test_the_places_of_a_pod_are_the_gpu_types_that_hold_the_need(peak: float, gpus: tuple[str, ...]) -> None:
    asked = _asks("inf-70b", 8, short=False, needs=Needs(gpu_mem_gib=peak))
    (rung,) = judged(asked, make_bench(lanes=("runpod",))).ladder
    assert (rung.width, rung.zones) == (8, gpus)


@pytest.mark.parametrize("lanes", [("runpod",), ("gcp", "runpod")])
def test_memory_that_no_pod_has_does_not_fit(lanes: tuple[str, ...]) -> None:
    verdict = judged(_asks("inf-70b", 8, short=False, needs=Needs(gpu_mem_gib=200.0)), make_bench(lanes=lanes))
    assert verdict.ladder == ()
    assert "RunPod rents no GPU with 200 GiB usable" in finding(verdict, "does_not_fit").message


def test_without_a_configured_lane_google_cloud_is_shown() -> None:
    assert judged(_asks("capture-7b", 1, short=False), make_bench(lanes=("local",))).ladder[0].lane == "gcp"


def test_length_is_held_gpu_hours_at_the_requested_width_and_two_is_still_short() -> None:
    two = judged(phase(width=1, gpu_hours=2.0, setup_minutes=0.0))
    assert (two.length, two.length_reason) == ("short", "2 GPU-hours at width 1, at most 2")
    more = judged(phase(width=1, gpu_hours=2.001, setup_minutes=0.0))
    assert (more.length, more.length_reason) == ("long", "2.001 GPU-hours at width 1, more than 2")
    unknown = judged(phase(width=1, gpu_hours=None))
    assert (unknown.length, unknown.length_reason) == ("long", "GPU-hours unknown")
    assert judged(phase(spot_tolerant=True)).length_reason == "spot_tolerant"


def test_the_same_work_is_long_when_it_holds_more_gpus() -> None:
    fields = {"axes": axes(x=8), "command": "run {x}", "outputs": (), "gpu_hours": 1.6, "setup_minutes": 10.0}
    assert judged(phase(width=1, **fields)).length == "short"
    wide = judged(phase(width=8, **fields))
    assert wide.length == "long"
    assert words(wide.ladder)[-3:] == ONE_LONG


def test_resumable_work_leads_with_spot_only_at_wide_machines_and_only_by_policy() -> None:
    bench = make_bench({"spot_if_resumable": True})
    assert words(judged(_asks("capture-7b", 2, short=False), bench).ladder) == TWO_SHORT + ONE_LONG
    assert words(judged(_asks("capture-7b", 1, short=False), bench).ladder) == ONE_LONG
    assert words(judged(_asks("capture-7b", 2, short=False, resumable=False), bench).ladder) == TWO_LONG + ONE_LONG
    kept = single(width=2, resumable=True, gpus_per_shard=2)
    assert words(judged(kept, bench).ladder) == TWO_SHORT


def test_rungs_that_would_run_out_of_time_are_left_out() -> None:
    one = phase(axes=axes(x=800), command="run {x}", outputs=(), gpu_hours=800.0, width=8)
    assert {rung.width for rung in judged(one).ladder} == {8}
    assert judged(one).verdict == "PASS"


@pytest.mark.parametrize(
    ("limit", "widths"), [(None, {8, 4, 2, 1}), (65.0, {8, 4, 2, 1}), (33.0, {8, 4, 2}), (17.0, {8, 4}), (9.0, {8})]
)
def test_a_time_limit_is_checked_at_each_width(limit: float | None, widths: set[int]) -> None:
    one = phase(axes=axes(x=64), command="run {x}", outputs=(), gpu_hours=64.0, width=8, time_limit_hours=limit)
    assert {rung.width for rung in judged(one).ladder} == widths


def test_machines_of_one_width_have_their_own_zones() -> None:
    ladder = judged(_asks("capture-7b", 8, short=False), make_bench(regions=("us-east4", "us-central1"))).ladder
    zones = {rung.machine_type: rung.zones for rung in ladder}
    assert zones["a2-ultragpu-8g"] != zones["a3-highgpu-8g"]
    assert all(
        zone in {offer.zone for offer in CATALOG.offers[name]} for name, found in zones.items() for zone in found
    )


def test_a_pin_says_why() -> None:
    with pytest.raises(PlanError) as caught:
        plan.parse("widelane: 1\nphases:\n- {name: a, intent: eval, pin: {lane: gcp}}\n")
    assert [(problem.code, problem.message) for problem in caught.value.problems] == [
        ("missing_key", "`reason` is missing.")
    ]
