"""What went wrong before, each held to what must happen; docs/incidents.md lists them all with their tests."""

from __future__ import annotations

import pytest

from tests.fakes.benches import axes, codes, errors, finding, judged, make_bench, parsed, phase, single, words
from widelane.lanes.gcp.defaults import IMAGE_MINIMUM_GIB, disk_gib
from widelane.models.plan import Needs, Phase
from widelane.router import UnitSalt, judge, make_units

LANES = ("gcp", "slurm.fir", "ssh.box", "runpod")


def test_an_upload_on_the_wide_machine_is_idle_width() -> None:
    upload = Phase(name="upload", gpus=0, after=("generate",), hold=True, wall_minutes=720.0)
    bench = make_bench()
    verdict = judge(parsed(phase(width=8), upload), bench)
    found = finding(verdict.phases[1], "idle_width")
    assert (verdict.verdict, found.numbers["held"], found.numbers["minutes"]) == ("REVISE", 8, 720.0)
    released = judge(parsed(phase(width=8), upload.model_copy(update={"hold": False})), bench)
    assert (released.verdict, words(released.phases[1].ladder)) == ("PASS", ["local 0"])


def test_each_phase_has_a_width_of_its_own() -> None:
    wide = phase(name="generate", width=8)
    extract = single(name="extract", gpu_hours=1.0, after=("generate",))
    judging = Phase(name="judge", gpus=0, after=("extract",), wall_minutes=40.0)
    verdict = judge(parsed(wide, extract, judging), make_bench())
    assert [one.requested_width for one in verdict.phases] == [8, 1, 0]
    assert verdict.verdict == "PASS"
    kept = judge(parsed(wide, extract.model_copy(update={"hold": True}), judging), make_bench())
    assert errors(kept.phases[1]) == ["idle_width"]


@pytest.mark.parametrize("intent", ["cpu-small", "cpu-mid", "cpu-bigmem"])
def test_statistics_get_no_gpu(intent: str) -> None:
    work = Phase(name="statistics", intent=intent, wall_minutes=360.0, command="python stats.py")
    verdict = judged(work, make_bench(lanes=LANES))
    assert (verdict.requested_width, {rung.width for rung in verdict.ladder}) == (0, {0})
    assert errors(judged(work.model_copy(update={"width": 8}), make_bench(lanes=LANES))) == ["idle_width"]


@pytest.mark.parametrize("lane", [*LANES, "local"])
def test_every_kind_of_work_has_a_decided_fate_on_every_lane(lane: str) -> None:
    bench = make_bench(lanes=(lane,))
    for intent in bench.intents.values():
        width = intent.base_gpus or None
        one = Phase(name="work", intent=intent.name, width=width, wall_minutes=30.0, why="one", axes=(), command="run")
        one = one.model_copy(update={"gpus_per_shard": width})
        verdict = judged(one, bench)
        refused = {"does_not_fit"} & set(codes(verdict))
        assert bool(verdict.ladder) != bool(refused), (intent.name, lane)
        if refused:
            assert intent.name in finding(verdict, "does_not_fit").message


def test_what_a_machine_must_hold_is_checked_before_any_call() -> None:
    bench = make_bench(lanes=("gcp",))
    needs = Needs(ram_gib=200.0, disk_gib=750.0, gpu_mem_gib=60.0)
    verdict = judged(phase(width=8, needs=needs), bench)
    machines = [bench.catalog.machine_types[rung.machine_type] for rung in verdict.ladder]
    assert machines
    assert all(machine.memory_gib >= 200.0 and machine.gpu_mem_gib * 0.95 >= 60.0 for machine in machines)
    too_much = judged(phase(width=8, needs=Needs(ram_gib=5000.0)), bench)
    assert (too_much.ladder, errors(too_much)) == ((), ["does_not_fit"])


def test_work_that_outgrows_the_small_gpu_never_gets_it() -> None:
    bench = make_bench(lanes=("gcp",))
    captured = judged(phase(intent="capture-7b", width=1, gpu_hours=1.0), bench)
    assert not [rung for rung in captured.ladder if "l4" in rung.gpu.lower()]
    declared = judged(phase(intent="eval", width=1, gpu_hours=1.0, needs=Needs(gpu_mem_gib=30.0)), bench)
    assert declared.ladder
    assert not [rung for rung in declared.ladder if "l4" in rung.gpu.lower()]


def test_a_fresh_run_has_units_of_its_own() -> None:
    one = phase(axes=axes(x=3), command="run {x}", outputs=("{x}",))
    first, second = (make_units(one, None, UnitSalt(generation=number)) for number in (1, 2))
    assert not {unit.digest for unit in first.units} & {unit.digest for unit in second.units}


@pytest.mark.parametrize("needed", [1, 60, IMAGE_MINIMUM_GIB, 750])
def test_a_disk_is_never_smaller_than_the_image_needs(needed: int) -> None:
    from widelane.config.settings import GcpSettings  # noqa: PLC0415 - only here, and it has many fields

    assert disk_gib(GcpSettings(project="p"), needed) == max(needed, IMAGE_MINIMUM_GIB)


def test_the_whole_need_goes_to_every_lane() -> None:
    bench = make_bench(lanes=LANES)
    verdict = judged(phase(intent="inf-70b", width=8, needs=Needs(gpu_mem_gib=100.0)), bench)
    pods = [rung for rung in verdict.ladder if rung.lane == "runpod"]
    assert [rung.zones for rung in pods] == [("NVIDIA H200",)]
    assert not [rung for rung in verdict.ladder if rung.lane == "gcp"]
