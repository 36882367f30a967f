"""Plans that are large or deep, and texts that only look so."""

from __future__ import annotations

import pytest

from tests.plan.conftest import Refused
from widelane import plan
from widelane.plan.compose import DEPTH_LIMIT

PHASE = """\
- name: p{0}
  intent: capture-7b
  axes: {{model: 2, draw_set: 10}}
  gpu_hours: 8
  width: 8
  command: python gen.py --model '{{model}}' --draws {{draw_set}}
  outputs: ["out/{{model}}/{{draw_set}}.json"]
"""


@pytest.mark.slow
def test_ten_thousand_phases_are_read_with_their_places():
    text = "widelane: 1\nphases:\n" + "".join(PHASE.format(number) for number in range(10_000))
    parsed = plan.parse(text)
    assert len(parsed.plan.phases) == 10_000
    assert parsed.marks.place("phases", 9_999, "width") == (2 + 7 * 9_999 + 5, 3)


def test_a_long_chain_of_phases_is_followed_to_its_end(refused: Refused):
    chain = "".join(f"- {{name: p{number}, after: [p{number - 1}]}}\n" for number in range(1, 5_000))
    plan.parse("widelane: 1\nphases:\n- name: p0\n" + chain)
    (problem,) = refused("widelane: 1\nphases:\n- {name: p0, after: [p4999]}\n" + chain)
    assert problem.code == "cycle"
    assert len(str(problem)) < 2_000


def test_each_loop_is_told_once(refused: Refused):
    text = "widelane: 1\nphases:\n"
    for first, second in ("ab", "cd"):
        text += f"- {{name: {first}, after: [{second}]}}\n- {{name: {second}, after: [{first}]}}\n"
    assert [problem.code for problem in refused(text)] == ["cycle", "cycle"]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
@pytest.mark.parametrize("depth", [DEPTH_LIMIT + 1, 900, 100_000])
def test_deep_nesting_is_refused(opening: str, depth: int, refused: Refused):
    (problem,) = refused("phases: [" * (opening == "[") + opening * depth, "plan.yaml")
    assert problem.code in ("too_deep", "bad_yaml")
    assert problem.line == 1


def test_aliases_that_multiply_are_refused_without_following_them(refused: Refused):
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    (problem,) = refused("\n".join(levels))
    assert problem.code == "alias_bomb"
    assert problem.line == 6


def test_a_long_list_that_many_phases_share_is_refused_when_it_outgrows_any_plan(refused: Refused):
    outputs = ", ".join(f"o{number}" for number in range(1_000))
    phases = "".join(f"- {{name: p{number}, outputs: *o}}\n" for number in range(1_100))
    (problem,) = refused(f"widelane: 1\nphases:\n- name: p\n  outputs: &o [{outputs}]\n{phases}")
    assert problem.code == "alias_bomb"


def test_ampersands_and_stars_in_a_large_plan_are_no_aliases():
    phase = "- {{name: p{0}, command: 'bash -c \"a & b *\"', outputs: ['*.json']}}\n"
    plan.parse("widelane: 1\nphases:\n" + "".join(phase.format(number) for number in range(2_000)))


def test_many_values_of_an_axis_are_read():
    values = ", ".join(map(str, range(50_000)))
    parsed = plan.parse(f"widelane: 1\nphases:\n- name: a\n  axes: {{x: [{values}]}}\n")
    axes = parsed.plan.phases[0].axes
    assert axes is not None
    assert (axes[0].size, axes[0].value(49_999)) == (50_000, "49999")
