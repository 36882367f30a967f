"""Each finding: when it is given and when not, where it points, what it says to do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.benches import (
    AMPLE,
    PROJECT,
    axes,
    codes,
    errors,
    finding,
    judged,
    make_bench,
    parsed,
    phase,
    quotas,
    single,
)
from widelane.models.plan import Accept, Marks, NarrowBecause, NarrowKind, Phase
from widelane.models.verdict import NEVER_ACCEPTED, FindingCode, PhaseVerdict, Severity
from widelane.router import judge


def _units(count: int, minutes: float, **fields: Any) -> PhaseVerdict:
    """`count` units of so many minutes, without set-up."""
    given: dict[str, Any] = {
        "axes": axes(x=count),
        "command": "run {x}",
        "outputs": (),
        "setup_minutes": 0.0,
        "gpu_hours": None,
        "unit_minutes": minutes,
    }
    return judged(phase(**{**given, **fields}))


def test_a_wide_request_for_a_command_that_does_not_shard_is_revised() -> None:
    verdict = judged(single(width=8))
    found = finding(verdict, "unsharded_wide")
    assert verdict.verdict == "REVISE"
    assert found.numbers == {"width": 8, "usable": 1, "idle_gpus": 7}
    assert "`width: 1`" in found.fix
    assert verdict.recommended_width == 1


def test_a_shardable_phase_that_asks_for_one_gpu_is_revised() -> None:
    verdict = judged(phase(width=1))
    found = finding(verdict, "needlessly_narrow")
    assert verdict.verdict == "REVISE"
    assert found.numbers["wider"] == 8
    assert found.numbers["saves_minutes"] == pytest.approx(408, abs=0.1)
    assert found.numbers["quota"] == "unknown"
    assert "`width: 8`" in found.fix
    assert verdict.recommended_width == 8


@pytest.mark.parametrize(
    "command",
    ["python train.py", "python train.py --sharded", "bash run_sharded.sh", "torchrun train.py", "vllm serve model"],
)
def test_the_word_sharded_proves_nothing(command: str) -> None:
    assert "unsharded_wide" in errors(judged(single(width=8, axes=None, why=None, command=command)))


@pytest.mark.parametrize("width", [2, 4, 8])
def test_axes_none_above_the_group_is_unsharded(width: int) -> None:
    assert errors(judged(single(width=width))) == ["unsharded_wide"]
    assert errors(judged(single(width=width, gpus_per_shard=width))) == []


def test_an_axis_of_one_value_shards_nothing() -> None:
    assert "unsharded_wide" in errors(_units(1, 60.0, width=8))


def test_a_launcher_with_a_fixed_count_uses_no_more_than_that() -> None:
    verdict = judged(single(width=8, command="torchrun --nproc_per_node 2 train.py"))
    found = finding(verdict, "unsharded_wide")
    assert (found.numbers["usable"], verdict.recommended_width) == (2, 2)
    assert "{gpus}" in found.fix


@pytest.mark.parametrize(("minutes", "fires"), [(5.0, True), (4.99, False)])
def test_needlessly_narrow_starts_at_ten_minutes(minutes: float, fires: bool) -> None:
    # Three units at width 1 take three times as long as at width 4.
    assert ("needlessly_narrow" in errors(_units(3, minutes, width=1))) is fires


@pytest.mark.parametrize(("tail", "fires"), [(40.0, True), (40.1, False)])
def test_needlessly_narrow_starts_at_a_quarter_of_the_time(tail: float, fires: bool) -> None:
    # Two units of 20 min and the tail: width 2 saves 20 of 80 min, or of a little more.
    given: dict[str, Any] = {"axes": axes(x=2), "command": "run {x}", "outputs": (), "setup_minutes": 0.0}
    one = phase(**given, gpu_hours=None, unit_minutes=20.0, tail_minutes=tail, width=1)
    verdict = judged(one, make_bench({"min_efficiency": 0.0}))
    assert ("needlessly_narrow" in errors(verdict)) is fires


@pytest.mark.parametrize(("setup", "fires"), [(60.0, True), (60.2, False)])
def test_needlessly_narrow_wants_half_of_the_time_at_work(setup: float, fires: bool) -> None:
    # Two units of an hour: at width 2 each GPU loads for an hour (efficiency 0.5) or a little longer.
    verdict = _units(2, 60.0, width=1, setup_minutes=setup)
    assert ("needlessly_narrow" in errors(verdict)) is fires


def test_a_wider_width_that_quota_denies_is_not_missed() -> None:
    listed = {**AMPLE, "A2_CPUS": (12.0, 0.0), "PREEMPTIBLE_NVIDIA_H100_GPUS": (8.0, 8.0)}
    bench = make_bench(quotas=quotas(PROJECT, us_central1=listed))
    assert errors(judged(phase(width=1), bench)) == []
    ample = make_bench(quotas=quotas(PROJECT, us_central1=AMPLE))
    assert finding(judged(phase(width=1), ample), "needlessly_narrow").numbers["quota"] == "yes"


def test_a_justification_changes_no_verdict() -> None:
    reason = "the cloud only had machines with one GPU"
    assert errors(judged(phase(width=1, justification=reason))) == ["needlessly_narrow"]


def test_a_waiver_with_its_number_does() -> None:
    waiver = NarrowBecause(kind=NarrowKind.LICENCE_SEATS, seats=1)
    assert errors(judged(phase(width=1, narrow_because=waiver))) == []


def test_more_gpus_than_units_are_too_many() -> None:
    verdict = _units(4, 60.0, width=8)
    found = finding(verdict, "too_wide")
    assert (verdict.verdict, found.numbers["narrower"], verdict.recommended_width) == ("REVISE", 4, 4)


@pytest.mark.parametrize(("tail", "fires"), [(90.0, True), (89.0, False)])
def test_too_wide_starts_where_the_narrower_width_takes_a_tenth_more(tail: float, fires: bool) -> None:
    # Two units of 10 min: width 2 takes 10 + tail, width 1 takes 20 + tail; 1.1 times at a tail of 90.
    verdict = _units(2, 10.0, width=2, tail_minutes=tail)
    assert ("too_wide" in errors(verdict)) is fires


def test_nine_units_on_eight_gpus_are_ragged_but_not_too_wide() -> None:
    verdict = _units(9, 60.0, width=8)
    found = finding(verdict, "ragged_wave")
    assert (verdict.verdict, codes(verdict), found.severity) == ("PASS", ["ragged_wave"], Severity.ADVICE)
    assert (found.numbers["waves"], found.numbers["fill"]) == (2, 0.5625)
    assert "multiple of 8" in found.fix


@pytest.mark.parametrize(("units", "fires"), [(12, False), (11, True)])
def test_ragged_is_below_three_quarters_of_the_waves(units: int, fires: bool) -> None:
    assert ("ragged_wave" in codes(_units(units, 60.0, width=8))) is fires


@pytest.mark.parametrize(("setup", "fires"), [(59.9, False), (60.0, False), (60.1, True)])
def test_low_efficiency_alone_is_advice(setup: float, fires: bool) -> None:
    verdict = _units(8, 60.0, width=8, setup_minutes=setup)
    assert (verdict.verdict, "low_efficiency" in codes(verdict)) == ("PASS", fires)


@pytest.mark.parametrize(
    ("width", "legal"), [(3, "1, 2, 4, 8"), (5, "1, 2, 4, 8"), (6, "1, 2, 4, 8"), (16, "1, 2, 4, 8")]
)
def test_a_width_that_no_machine_has_is_refused_and_never_snapped(width: int, legal: str) -> None:
    verdict = judged(phase(width=width))
    found = finding(verdict, "off_ladder")
    assert (found.numbers["legal"], verdict.requested_width, verdict.ladder) == (legal, width, ())
    assert legal in found.fix
    assert verdict.recommended_width == 8


@pytest.mark.parametrize(("intent", "width", "legal"), [("ft-7b", 2, "4, 8"), ("sweep-8g-h100", 4, "8")])
def test_a_width_below_what_the_intent_comes_in_is_off_the_ladder(intent: str, width: int, legal: str) -> None:
    assert finding(judged(phase(intent=intent, width=width)), "off_ladder").numbers["legal"] == legal


def test_a_min_width_above_the_width_is_off_the_ladder() -> None:
    verdict = judged(phase(width=2, min_width=4))
    assert "ask for 4, 8" in finding(verdict, "off_ladder").fix
    assert judged(phase(min_width=16)).verdict == "REVISE"


@pytest.mark.parametrize(
    ("width", "group", "fires"), [(1, 2, True), (2, 2, False), (4, 3, True), (8, 4, False), (4, 8, True)]
)
def test_a_width_is_a_multiple_of_the_group(width: int, group: int, fires: bool) -> None:
    verdict = judged(phase(width=width, gpus_per_shard=group))
    assert ("bad_group" in errors(verdict)) is fires


def test_a_group_that_divides_no_width_is_to_be_changed_itself() -> None:
    assert "divisor" in finding(judged(phase(gpus_per_shard=3)), "bad_group").fix
    assert "2, 4, 8" in finding(judged(phase(width=1, gpus_per_shard=2)), "bad_group").fix


@pytest.mark.parametrize(
    ("command", "group", "fires"),
    [
        ("torchrun --nproc_per_node 2 x.py {model} {draw_set}", 2, False),
        ("torchrun --nproc_per_node 4 x.py {model} {draw_set}", 2, True),
        ("torchrun x.py {model} {draw_set}", 1, False),
        ("torchrun x.py {model} {draw_set}", 2, True),
        ("torchrun --nproc_per_node {gpus} x.py {model} {draw_set}", 2, False),
        ("env CUDA_VISIBLE_DEVICES=0 python x.py {model} {draw_set}", 1, True),
    ],
)
def test_a_count_in_a_unit_command_is_that_of_its_group(command: str, group: int, fires: bool) -> None:
    verdict = judged(phase(width=8, command=command, gpus_per_shard=group, gpu_hours=40.0))
    assert ("bad_group" in errors(verdict)) is fires


@pytest.mark.parametrize(
    ("fields", "fires"),
    [
        ({}, True),
        ({"min_width": 8}, False),
        ({"min_width": 4}, True),
        ({"gpus_per_shard": 8}, False),
        ({"command": "torchrun --nproc_per_node {gpus} train.py"}, False),
        ({"command": "accelerate launch train.py"}, False),
    ],
)
def test_a_fixed_count_cannot_be_resharded(fields: dict[str, Any], fires: bool) -> None:
    given: dict[str, Any] = {
        "width": 8,
        "axes": None,
        "why": None,
        "gpu_hours": 1.9,
        "command": "torchrun --nproc_per_node 8 train.py",
    }
    verdict = judged(single(**{**given, **fields}))
    assert ("cannot_reshard" in errors(verdict)) is fires
    if fires:
        found = finding(verdict, "cannot_reshard")
        assert "{gpus}" in found.fix
        assert "min_width" in found.fix


@pytest.mark.parametrize(
    ("count", "min_width", "fires"), [(8, None, True), (8, 8, False), (4, 8, True), (None, None, False)]
)
def test_a_fixed_number_of_shards_cannot_be_resharded(count: int | None, min_width: int | None, fires: bool) -> None:
    shards = "{shards}" if count is None else str(count)
    one = phase(
        width=8,
        min_width=min_width,
        axes=None,
        gpu_hours=1.9,
        command=f"python x.py --shard {{shard}} --num-shards {shards}",
        outputs=("out/{shard}.json",),
    )
    assert ("cannot_reshard" in errors(judged(one))) is fires


@pytest.mark.parametrize(("minutes", "fires"), [(15.0, False), (15.1, True), (None, True)])
def test_an_api_phase_may_keep_the_machine_waiting_for_fifteen_minutes(minutes: float | None, fires: bool) -> None:
    plan = parsed(phase(width=8), Phase(name="judge", gpus=0, after=("generate",), wall_minutes=minutes, hold=True))
    verdict = judge(plan, make_bench()).phases[1]
    assert ("idle_width" in errors(verdict)) is fires


def test_a_narrow_gpu_phase_that_keeps_a_wide_machine_is_idle_width() -> None:
    bench = make_bench()
    short = single(gpu_hours=0.25, hold=True, after=("generate",), width=1)
    long = single(gpu_hours=0.26, hold=True, after=("generate",), width=1)
    assert errors(judge(parsed(phase(width=8), short), bench).phases[1]) == []
    found = finding(judge(parsed(phase(width=8), long), bench).phases[1], "idle_width")
    assert (found.numbers["width"], found.numbers["used"]) == (8, 1)


def test_a_chain_of_holds_keeps_the_first_machine() -> None:
    phases = [phase(width=8)]
    for index in range(3):
        before = phases[-1].name
        phases.append(Phase(name=f"judge{index}", gpus=0, after=(before,), wall_minutes=60, hold=True))
    verdicts = judge(parsed(*phases), make_bench()).phases[1:]
    assert [finding(verdict, "idle_width").numbers["width"] for verdict in verdicts] == [8, 8, 8]


def test_holds_that_lead_nowhere_hold_nothing() -> None:
    first = Phase(name="a", gpus=0, wall_minutes=60, hold=True)
    lost = Phase(name="b", gpus=0, wall_minutes=60, hold=True, after=("elsewhere",))
    ring = Phase(name="c", gpus=0, wall_minutes=60, hold=True, after=("c",))
    assert [errors(verdict) for verdict in judge(parsed(first, lost, ring), make_bench()).phases] == [[], [], []]


def test_the_phase_above_is_the_one_whose_machine_is_kept() -> None:
    plan = parsed(phase(width=8), Phase(name="judge", gpus=0, wall_minutes=60, hold=True))
    assert errors(judge(plan, make_bench()).phases[1]) == ["idle_width"]


def test_without_hold_the_machine_is_let_go_and_nothing_is_idle() -> None:
    plan = parsed(phase(width=8), Phase(name="judge", gpus=0, after=("generate",), wall_minutes=600))
    assert errors(judge(plan, make_bench()).phases[1]) == []


@pytest.mark.parametrize("fields", [{"gpus": 0}, {"intent": "cpu-mid"}])
def test_a_phase_without_gpu_that_asks_for_some_is_idle_width(fields: dict[str, Any]) -> None:
    verdict = judged(Phase(name="upload", width=8, wall_minutes=5, **fields))
    assert errors(verdict) == ["idle_width"]
    assert verdict.requested_width == 0


@pytest.mark.parametrize(("hours", "fires"), [(2.0, False), (2.01, True)])
def test_a_phase_of_more_than_two_hours_names_its_axes_or_none(hours: float, fires: bool) -> None:
    silent = single(axes=None, why=None, gpu_hours=hours)
    assert ("axis_undeclared" in errors(judged(silent))) is fires
    assert "axis_undeclared" not in errors(judged(single(gpu_hours=hours)))
    without_reason = single(why=None, gpu_hours=hours)
    assert ("axis_undeclared" in errors(judged(without_reason))) is fires


def test_a_launcher_or_a_split_is_a_declaration() -> None:
    for command in ("accelerate launch x.py", "python x.py --shard {shard} --of {shards}"):
        assert "axis_undeclared" not in errors(judged(single(axes=None, why=None, gpu_hours=20.0, command=command)))


def test_an_unknown_intent_gets_the_nearest() -> None:
    verdict = judged(phase(intent="capture7b"))
    found = finding(verdict, "intent_unknown")
    assert "capture-7b" in found.fix
    assert (verdict.ladder, verdict.widths) == ((), ())
    assert "capture-7b" in finding(judged(phase(intent=None)), "intent_unknown").fix
    assert errors(judged(Phase(name="judge", gpus=0, intent="evall"))) == ["intent_unknown"]


def test_a_user_intent_is_known() -> None:
    mine = make_bench().intents["capture-7b"].model_copy(update={"name": "capture-13b"})
    assert errors(judged(phase(intent="capture-13b", width=8), make_bench(intents={"capture-13b": mine}))) == []


def test_work_without_an_estimate_cannot_be_judged() -> None:
    verdict = judged(phase(gpu_hours=None))
    assert errors(verdict) == ["no_estimate"]
    assert (verdict.widths, verdict.requested_width) == ((), 1)
    wrong = finding(judged(phase(gpu_hours=None, unit_minutes=(1.0, 2.0))), "no_estimate")
    assert "2 times for 20 units" in wrong.message


def test_wall_minutes_are_an_estimate_too() -> None:
    assert judged(single(gpu_hours=None, wall_minutes=60.0)).widths[0].wall_hours == 1.0


@pytest.mark.parametrize(("hours", "fires"), [(168.0, False), (168.1, True)])
def test_a_run_longer_than_a_machine_may_live_is_revised(hours: float, fires: bool) -> None:
    verdict = judged(single(gpu_hours=hours, width=1))
    assert ("exceeds_run_limit" in errors(verdict)) is fires
    assert (verdict.ladder == ()) is fires


def test_a_wider_machine_that_ends_in_time_is_the_fix() -> None:
    verdict = _units(400, 60.0, width=1)
    found = finding(verdict, "exceeds_run_limit")
    assert "width 4" in found.fix
    assert verdict.recommended_width == 8
    assert errors(verdict) == ["exceeds_run_limit"]


def test_the_plan_may_set_a_lower_limit() -> None:
    assert errors(judged(single(gpu_hours=5.0, time_limit_hours=4.0))) == ["exceeds_run_limit"]
    assert errors(judged(single(gpu_hours=4.0, time_limit_hours=4.0))) == []


def test_an_accepted_run_limit_keeps_its_rungs() -> None:
    entry = Accept(code="exceeds_run_limit", phase="fit", reason="units resume")
    verdict = judged(single(gpu_hours=200.0, accept=(entry,)))
    assert (verdict.verdict, len(verdict.ladder)) == ("PASS", 3)


@pytest.mark.parametrize(("units", "fires"), [(100_000, False), (100_001, True), (10_000_000, True)])
def test_too_many_units_are_to_be_grouped(units: int, fires: bool) -> None:
    verdict = _units(units, 1.0, width=8)
    assert ("too_many_units" in errors(verdict)) is fires
    if fires:
        assert "x_block: 100000" in finding(verdict, "too_many_units").fix


def test_the_largest_axis_is_grouped() -> None:
    one = phase(axes=axes(model=2, prefix=10_000_000), command="run {model} {prefix}", outputs=(), width=8)
    found = finding(judged(one), "too_many_units")
    assert "prefix_block: 50000 with 200 values of prefix each" in found.fix


def test_quotas_that_are_not_listed_are_advice() -> None:
    bench = make_bench(quotas=quotas(None, us_central1=None))
    verdict = judged(phase(width=8), bench)
    assert (verdict.verdict, codes(verdict)) == ("PASS", ["quota_unknown"])
    assert codes(judged(phase(width=8))) == []


def test_a_finding_points_to_its_key() -> None:
    places = {("phases",): (3, 1), ("phases", 0): (4, 3), ("phases", 0, "width"): (11, 5)}
    plan = parsed(phase(width=1), marks=Marks(places))
    found = judge(plan, make_bench()).phases[0].findings[0]
    assert (found.line, found.column) == (11, 5)
    no_key = judge(parsed(phase(gpu_hours=None), marks=Marks(places)), make_bench()).phases[0].findings[0]
    assert (no_key.line, no_key.column) == (4, 3)


def test_an_accepted_finding_is_shown_and_does_not_revise() -> None:
    entry = Accept(code="needlessly_narrow", phase="generate", reason="one GPU is free now")
    for verdict in (
        judged(phase(width=1, accept=(entry,))),
        judge(parsed(phase(width=1), accept=(entry,)), make_bench()).phases[0],
    ):
        assert (verdict.verdict, finding(verdict, "needlessly_narrow").accepted) == ("PASS", "one GPU is free now")


def test_an_entry_for_another_phase_or_code_accepts_nothing() -> None:
    other = Accept(code="needlessly_narrow", phase="judge", reason="no")
    assert errors(judge(parsed(phase(width=1), accept=(other,)), make_bench()).phases[0]) == ["needlessly_narrow"]
    code = Accept(code="too_wide", phase="generate", reason="no")
    assert errors(judged(phase(width=1, accept=(code,)))) == ["needlessly_narrow"]


@pytest.mark.parametrize(
    ("code", "one"),
    [
        ("unsharded_wide", single(width=8)),
        ("bad_group", phase(width=4, gpus_per_shard=3)),
        ("does_not_fit", single(intent="ft-70b", width=8)),
        ("off_ladder", phase(width=3)),
        ("too_many_units", phase(axes=axes(x=10**9), command="run {x}", outputs=(), width=8)),
    ],
)
def test_what_cannot_work_cannot_be_accepted(code: str, one: Phase) -> None:
    entry = Accept(code=code, phase=one.name, reason="I want it")
    verdict = judged(one.model_copy(update={"accept": (entry,)}))
    assert FindingCode(code) in NEVER_ACCEPTED
    assert verdict.verdict == "REVISE"
    assert finding(verdict, code).accepted is None


def test_one_bad_phase_revises_the_plan() -> None:
    verdict = judge(parsed(phase(width=8), single(width=8)), make_bench())
    assert (verdict.verdict, [p.verdict for p in verdict.phases]) == ("REVISE", ["PASS", "REVISE"])
