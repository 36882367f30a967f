"""Phases in series that take nothing from each other, and arms that wait for each other's machine."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.benches import axes, codes, errors, finding, judged, make_bench, parsed, phase, single
from widelane.models.plan import Arm, Axis, Marks, NarrowBecause, NarrowKind, Phase
from widelane.models.verdict import PhaseVerdict
from widelane.router import judge


def _train(name: str, **fields: Any) -> Phase:
    """A behaviour that is trained alone: 3 h on one GPU."""
    given: dict[str, Any] = {
        "name": name,
        "command": f"python train.py --behaviour {name}",
        "outputs": (f"models/{name}/weights.bin",),
        "gpu_hours": 3.0,
    }
    return single(**{**given, **fields})


def _second(*phases: Phase, marks: Marks | None = None) -> PhaseVerdict:
    return judge(parsed(*phases, marks=marks), make_bench()).phases[-1]


def test_behaviours_that_are_trained_one_after_the_other_without_need_are_told_apart() -> None:
    verdict = _second(_train("sly"), _train("kind", after=("sly",)), marks=Marks({("phases", 1, "after", 0): (9, 13)}))
    found = finding(verdict, "chained_independent")
    assert (found.line, found.column, verdict.verdict) == (9, 13, "REVISE")
    assert (found.numbers["hours_before"], found.numbers["hours"], found.numbers["saves_minutes"]) == (3.0, 3.0, 180.0)
    assert "sly out of `after`" in found.fix


@pytest.mark.parametrize(("first", "second", "fires"), [(2.01, 2.01, True), (2.0, 3.0, False), (3.0, 2.0, False)])
def test_both_must_take_more_than_two_hours(first: float, second: float, fires: bool) -> None:
    verdict = _second(_train("sly", gpu_hours=first), _train("kind", gpu_hours=second, after=("sly",)))
    assert ("chained_independent" in errors(verdict)) is fires


@pytest.mark.parametrize(
    "reads",
    [
        {"command": "python eval.py --weights models/sly/weights.bin"},
        {"command": "python eval.py --weights=models/sly/weights.bin"},
        {"command": "python eval.py models/sly"},
        {"command": "python eval.py models"},
        {"command": ("python", "eval.py", "models/")},
        {"inputs": ("models/sly/weights.bin",)},
        {"env": (("WEIGHTS", "models/sly/weights.bin"),)},
        {"merge": "python merge.py models/sly"},
        {"workdir": "models/sly"},
    ],
)
def test_a_phase_that_names_what_the_other_writes_depends_on_it(reads: dict[str, Any]) -> None:
    assert errors(_second(_train("sly"), _train("kind", after=("sly",), **reads))) == []


@pytest.mark.parametrize("other", ["models/kind", "models/slyer/weights.bin", "mymodels", "out/models.txt"])
def test_a_name_that_only_looks_alike_is_no_dependence(other: str) -> None:
    verdict = _second(_train("sly"), _train("kind", after=("sly",), command=f"python train.py --out {other}"))
    assert errors(verdict) == ["chained_independent"]


@pytest.mark.parametrize("outputs", [(), ("{seed}.bin",), ("*.bin",)])
def test_where_nothing_says_what_the_first_writes_the_order_is_believed(outputs: tuple[str, ...]) -> None:
    assert errors(_second(_train("sly", outputs=outputs), _train("kind", after=("sly",)))) == []


def test_a_machine_that_is_kept_for_independent_work_is_a_chain_too() -> None:
    found = finding(_second(_train("sly"), _train("kind", hold=True)), "chained_independent")
    assert "Take `hold` out" in found.fix


def test_phases_side_by_side_are_no_chain() -> None:
    assert errors(_second(_train("sly"), _train("kind"))) == []


def test_api_work_is_chained_by_its_wall_clock() -> None:
    first = Phase(name="a", gpus=0, wall_minutes=180, command="python a.py", outputs=("a/all.json",))
    second = Phase(name="b", gpus=0, wall_minutes=130, command="python b.py", after=("a",))
    assert errors(_second(first, second)) == ["chained_independent"]
    assert errors(_second(first, second.model_copy(update={"wall_minutes": None}))) == []


def test_a_phase_that_collects_many_is_no_link_of_a_chain() -> None:
    many = [_train(f"b{index}") for index in range(65)]
    collect = _train("all", after=tuple(one.name for one in many))
    assert errors(judge(parsed(*many, collect), make_bench()).phases[-1]) == []


def _wave(name: str, first: int, count: int = 9, **fields: Any) -> Phase:
    seeds = (Axis(name="seed", size=count, values=tuple(str(first + index) for index in range(count))),)
    given: dict[str, Any] = {
        "name": name,
        "axes": seeds,
        "command": "python train.py --seed {seed}",
        "outputs": (f"{name}/{{seed}}.bin",),
        "gpu_hours": float(count),
        "width": 8,
    }
    return phase(**{**given, **fields})


def test_the_same_command_in_waves_is_one_phase() -> None:
    verdict = _second(_wave("first", 0, 12), _wave("second", 12, 12, after=("first",)))
    found = finding(verdict, "wave_barrier")
    # Apart: twice 8 min and two waves; as one: 8 min and three waves.
    assert found.numbers["saves_minutes"] == pytest.approx(68.0)
    assert "one phase" in found.fix
    assert "chained_independent" not in codes(verdict)


def test_waves_that_cost_nothing_are_advice() -> None:
    free: dict[str, Any] = {"setup_minutes": 1.0}
    verdict = _second(_wave("first", 0, 8, **free), _wave("second", 8, 8, after=("first",), **free))
    assert (codes(verdict), errors(verdict)) == (["wave_barrier"], [])


def test_a_wave_that_reads_the_one_before_is_a_step() -> None:
    step = _wave("second", 9, after=("first",), inputs=("first/0.bin",))
    assert codes(_second(_wave("first", 0, 16), step)) == codes(judged(step.model_copy(update={"after": ()})))


def test_another_command_or_kind_of_work_is_no_wave() -> None:
    others: tuple[dict[str, Any], ...] = ({"command": "python eval.py --seed {seed}"}, {"intent": "lora-7b"})
    for other in others:
        assert "wave_barrier" not in codes(_second(_wave("first", 0), _wave("second", 9, after=("first",), **other)))


@pytest.mark.parametrize(
    ("script", "fires"),
    [
        ("for i in 1 2; do for g in 0 1; do python x.py $g & done; wait; done", True),
        ("for i in 1 2\ndo\n python a.py &\n python b.py &\n wait\ndone", True),
        ("while read s; do python x.py $s & wait; done < seeds", True),
        ("for g in 0 1; do python x.py $g & done; wait", False),
        ("python a.py & python b.py & wait", False),
        ("for i in 1 2; do python x.py; wait; done", False),
        ("for i in 1 2; do python x.py & wait -n; done", False),
        ("python wait.py --done", False),
    ],
)
def test_a_loop_that_waits_for_all_that_it_started_is_a_barrier(script: str, fires: bool) -> None:
    assert ("wave_barrier" in errors(judged(single(command=("bash", "-c", script))))) is fires


def test_arms_that_start_on_machines_of_different_width_are_two_phases() -> None:
    arms = (
        Arm(name="small", axes=axes(x=4), command="run s {x}", gpu_hours=4.0),
        Arm(name="large", axes=axes(y=2), command="run l {y}", gpu_hours=8.0, min_width=8),
    )
    verdict = judged(phase(axes=None, command=None, outputs=(), gpu_hours=None, arms=arms, width=8))
    found = finding(verdict, "min_width_mixed")
    assert (found.numbers["narrowest"], found.numbers["widest"], verdict.min_width) == (1, 8, 8)
    assert found.fix == "Make large a phase of its own with `min_width: 8`."
    assert {rung.width for rung in verdict.ladder} == {8}


def test_arms_of_one_least_width_share_their_request() -> None:
    arms = tuple(Arm(name=name, axes=axes(x=4), command=f"run {name} {{x}}", min_width=2) for name in ("a", "b"))
    verdict = judged(phase(axes=None, command=None, outputs=(), gpu_hours=8.0, arms=arms, width=8))
    assert (errors(verdict), verdict.min_width) == ([], 2)
    groups = (Arm(name="a", command="run a"), Arm(name="b", command="run b", gpus_per_shard=4))
    assert "min_width_mixed" in errors(judged(phase(axes=None, command=None, outputs=(), arms=groups, width=8)))


@pytest.mark.parametrize(
    ("waiver", "useful"),
    [
        (NarrowBecause(kind=NarrowKind.LICENCE_SEATS, seats=1), 1),
        (NarrowBecause(kind=NarrowKind.LICENCE_SEATS, seats=4), 4),
        (NarrowBecause(kind=NarrowKind.SHARED_STATE, path="cache.db"), 1),
        (NarrowBecause(kind=NarrowKind.RATE_LIMITED, calls=4800, calls_per_minute=10), 1),
        (NarrowBecause(kind=NarrowKind.RATE_LIMITED, calls=600, calls_per_minute=10), 8),
    ],
)
def test_each_kind_of_reason_caps_the_useful_width_by_its_number(waiver: NarrowBecause, useful: int) -> None:
    given: dict[str, Any] = {"axes": axes(x=32), "command": "run {x}", "outputs": (), "narrow_because": waiver}
    assert judged(phase(**given)).requested_width == useful
    assert "needlessly_narrow" not in errors(judged(phase(**given, width=useful)))
    if useful < 8:
        assert "too_wide" in errors(judged(phase(**given, width=8)))
    if useful > 1:
        assert "needlessly_narrow" in errors(judged(phase(**given, width=1)))


def test_work_in_an_order_stays_narrow() -> None:
    ordered = single(gpu_hours=40.0, narrow_because=NarrowBecause(kind=NarrowKind.ORDER_DEPENDENT))
    assert codes(judged(ordered)) == []


def test_a_static_split_of_unequal_units_is_advised_against() -> None:
    minutes = (180.0, 10.0, 180.0, 10.0)
    split: dict[str, Any] = {"axes": axes(x=4), "gpu_hours": None, "unit_minutes": minutes, "outputs": (), "width": 2}
    dealt = judged(phase(**split, command="run {shard} {shards}"))
    assert finding(dealt, "static_split").numbers["saves_minutes"] == pytest.approx(170.0)
    assert "static_split" not in codes(judged(phase(**split, command="run {x}")))


def test_an_axis_that_reloads_belongs_first() -> None:
    fields: dict[str, Any] = {"command": "run {model} {draw}", "outputs": (), "width": 2, "gpu_hours": 4.0}
    reload = (("model", 8.0),)
    late = judged(phase(axes=axes(draw=20, model=3), reload_minutes=reload, **fields))
    early = judged(phase(axes=axes(model=3, draw=20), reload_minutes=reload, **fields))
    found = finding(late, "reload_order")
    assert found.numbers["saves_minutes"] == pytest.approx(
        (late.widths[1].wall_hours - early.widths[1].wall_hours) * 60, abs=0.1
    )
    assert "model first" in found.fix
    assert "reload_order" not in codes(early)


@pytest.mark.parametrize(
    ("fields", "fires"),
    [
        ({"spot_tolerant": True, "gpu_hours": 2.1}, True),
        ({"spot_tolerant": True, "gpu_hours": 1.9}, False),
        ({"spot_tolerant": False, "gpu_hours": 2.1}, False),
        ({"spot_tolerant": True, "gpu_hours": 2.1, "checkpoint_minutes": 10.0}, False),
    ],
)
def test_units_that_are_too_long_for_spot_are_named_where_spot_leads(fields: dict[str, Any], fires: bool) -> None:
    assert ("spot_units_long" in codes(judged(single(**fields)))) is fires


names = st.sampled_from(["alpha", "beta", "gamma", "delta", "p1", "the-last"])


@settings(max_examples=40, deadline=None)
@given(st.lists(names, min_size=3, max_size=3, unique=True), st.permutations([0, 1, 2]), st.booleans())
def test_names_and_order_of_phases_change_no_chain(called: list[str], order: list[int], reads: bool) -> None:
    def build(names: list[str]) -> list[Phase]:
        command = "python b.py models/x/w.bin" if reads else "python b.py"
        return [
            _train("x").model_copy(update={"name": names[0]}),
            _train("y", command=command).model_copy(update={"name": names[1], "after": (names[0],)}),
            _train("z", justification="runs after everything, sharded").model_copy(
                update={"name": names[2], "after": (names[0], names[1])}
            ),
        ]

    plain = [errors(one) for one in judge(parsed(*build(["a", "b", "c"])), make_bench()).phases]
    renamed = build(called)
    verdict = judge(parsed(*(renamed[index] for index in order)), make_bench())
    found = {one.name: errors(one) for one in verdict.phases}
    assert [found[name] for name in called] == plain
