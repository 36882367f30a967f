"""What a finding leaves no choice about is mended; what it leaves to choose is not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.benches import axes, errors, judged, make_bench, parsed, phase, single
from widelane.models.mend import Mend
from widelane.models.plan import Accept, Arm, Phase, Pin
from widelane.router import judge, mends

BENCH = make_bench()


def _mends(*phases: Phase) -> tuple[Mend, ...]:
    plan = parsed(*phases)
    return mends(plan, judge(plan, BENCH))


def _at(value: str | None, *path: str | int, word: str = "") -> Mend:
    return Mend(("phases", 0, *path), value, word)


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (phase(width=1), (_at("8", "width"),)),
        (phase(width=3), (_at("8", "width"),)),
        (single(width=8), (_at("1", "width"),)),
        (phase(axes=axes(x=4), command="run {x}", outputs=(), width=8), (_at("4", "width"),)),
        (phase(width=2, gpus_per_shard=4), (_at("8", "width"),)),
        (phase(axes=axes(x=400), command="run {x}", outputs=(), gpu_hours=400.0, width=1), (_at("8", "width"),)),
        (Phase(name="up", gpus=0, width=8, wall_minutes=5), (_at(None, "width"),)),
        (phase(intent="capture7b", width=8), (_at("capture-7b", "intent"),)),
        (
            phase(command="run {modle} {draw_set}", width=8),
            (_at("{model}", "command", word="{modle}"), _at("{model}", "outputs", word="{modle}")),
        ),
    ],
)
def test_a_finding_with_one_way_out_is_mended(one: Phase, expected: tuple[Mend, ...]) -> None:
    assert _mends(one) == expected


@pytest.mark.parametrize(
    "one",
    [
        phase(width=8),
        phase(width=1, accept=(Accept(code="needlessly_narrow", phase="generate", reason="free"),)),
        phase(width=8, min_width=8, axes=axes(x=4), command="run {x}", outputs=()),
        phase(width=2, min_width=4),
        phase(intent="nothing like it"),
        phase(intent=None),
        phase(command="run {nothing_like_it} {model} {draw_set}", width=8),
        phase(
            width=8,
            command=None,
            outputs=(),
            arms=(Arm(name="a", axes=axes(seed=9, draw=2), command="r {seed} {drow}"),),
        ),
        single(width=None, axes=None, why=None),
        phase(width=8, pin=Pin(lane="slurm", reason="data")),
        phase(gpu_hours=None, width=8),
        phase(command="run all", width=8),
    ],
)
def test_a_finding_that_leaves_a_choice_is_not(one: Phase) -> None:
    found = _mends(one)
    assert [mend for mend in found if mend.path[-1] != "width"] == []
    assert one.min_width == 4 or not found


def test_the_width_waits_until_the_command_names_its_axes() -> None:
    assert _mends(phase(axes=axes(model=8), command="run {modle}", outputs=(), width=8)) == (
        _at("{model}", "command", word="{modle}"),
        _at("{model}", "outputs", word="{modle}"),
    )


def test_a_machine_that_is_kept_in_vain_is_let_go() -> None:
    idle = Phase(name="judge", gpus=0, width=8, after=("generate",), wall_minutes=60, hold=True)
    assert _mends(phase(width=8), idle) == (
        Mend(("phases", 1, "width"), None),
        Mend(("phases", 1, "hold"), None),
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 60),
    st.floats(0.05, 100.0),
    st.floats(0.0, 60.0),
    st.sampled_from([1, 2, 3, 4, 5, 8, 16]),
    st.sampled_from(["eval", "capture-7b", "lora-7b"]),
)
def test_a_mended_width_leaves_no_finding_about_width(
    units: int, hours: float, setup: float, width: int, intent: str
) -> None:
    fields: dict[str, Any] = {"axes": axes(x=units), "command": "run {x}", "outputs": ()}
    one = phase(intent=intent, gpu_hours=round(hours, 3), setup_minutes=round(setup, 1), width=width, **fields)
    before = errors(judged(one, BENCH))
    found = _mends(one)
    assert bool(found) == bool(before)
    after = one.model_copy(update={"width": int(found[0].value or 0)}) if found else one
    assert errors(judged(after, BENCH)) == []
