"""Scalars are YAML 1.2's, and only a key that wants a number makes one."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.conftest import ReadPhase, Refused
from widelane import plan

SPELLINGS = ["on", "yes", "no", "007", "1e-3", "1_000", "0x1F", "0o17", "true", "1.50", "2026-01-01", "12:30:45", "Y"]
HEAD = "widelane: 1\nphases:\n- name: a\n  "


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_text_keeps_its_spelling(spelling: str):
    parsed = plan.parse(
        f"widelane: 1\ntask: {spelling}\nphases: [{{name: a, env: {{V: {spelling}}}, axes: {{x: [{spelling}]}}}}]"
    )
    phase = parsed.plan.phases[0]
    assert parsed.plan.task == spelling
    assert phase.env == (("V", spelling),)
    assert phase.axes is not None
    assert phase.axes[0].values == (spelling,)


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8), ("+8", 8), ("008", 8), ("0x10", 16), ("0o10", 8), ("1000000000", 10**9)]
)
def test_whole_numbers_of_yaml_1_2_are_read(text: str, number: int, read_phase: ReadPhase):
    assert read_phase(f"width: {text}").width == number


@pytest.mark.parametrize(
    ("text", "number"), [("8", 8), ("8.5", 8.5), (".5", 0.5), ("5.", 5), ("1e1", 10), ("2.5E-1", 0.25), ("0x10", 16)]
)
def test_numbers_of_yaml_1_2_are_read(text: str, number: float, read_phase: ReadPhase):
    assert read_phase(f"gpu_hours: {text}").gpu_hours == number


@pytest.mark.parametrize(
    "text",
    [
        *("0", "-1", "-0.5", "1e-9", "1000000001", "1e400", "1" * 5000, "-" + "1" * 5000, "0x" + "f" * 5000),
        *(".inf", "-.inf", ".nan", "1_000", "'1,000'", "'8'", '"8"', "eight", "8h", "true", "[8]", "{a: 8}", "12:30"),
    ],
)
@pytest.mark.parametrize("key", ["gpu_hours", "width", "unit_minutes", "axes: {x", "needs: {ram_gib"])
def test_what_is_no_number_within_bounds_is_refused(key: str, text: str, refused: Refused):
    close = "}" if "{" in key else ""
    if key == "unit_minutes" and text == "[8]":
        text = "[8, eight]"
    if key == "axes: {x" and text == "[8]":
        text = "[[8]]"
    (problem,) = refused(f"{HEAD}{key}: {text}{close}\n")
    assert problem.code == "wrong_type"
    assert problem.line == 4
    assert problem.fix


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("'8'", "Write `width: 8` without quotes."),
        ("1_000", "Write `width: 1000`."),
        ("8.0", "Write `width: 8`."),
        (".inf", "Give a finite estimate"),
    ],
)
def test_a_number_in_the_wrong_spelling_is_mended(text: str, fix: str, refused: Refused):
    (problem,) = refused(f"{HEAD}width: {text}\n")
    assert problem.fix.startswith(fix)


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_true_is_read(text: str, read_phase: ReadPhase):
    assert read_phase(f"spot_tolerant: {text}").spot_tolerant is True


@pytest.mark.parametrize(("text", "fix"), [("yes", "true"), ("On", "true"), ("no", "false"), ('"false"', "false")])
def test_other_words_for_true_and_false_are_mended(text: str, fix: str, refused: Refused):
    (problem,) = refused(f"{HEAD}resumable: {text}\n")
    assert problem.fix == f"Write `resumable: {fix}`."


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
@pytest.mark.parametrize("key", ["width", "intent", "axes", "after", "needs", "hold", "source", "gpus", "secrets"])
def test_a_key_without_value_is_refused(key: str, text: str, refused: Refused):
    (problem,) = refused(f"{HEAD}{key}: {text}\n")
    assert problem.code in ("no_value", "bad_secret")
    assert problem.line == 4


def test_quoted_words_that_mean_nothing_are_text(read_phase: ReadPhase):
    assert read_phase("justification: 'null'").justification == "null"


def test_an_empty_variable_is_given_by_quotes(read_phase: ReadPhase):
    assert read_phase("env: {A: ''}").env == (("A", ""),)


@given(st.integers(1, 10**9))
def test_every_width_is_read_as_written(width: int):
    assert plan.parse(f"{HEAD}width: {width}").plan.phases[0].width == width


@given(st.floats(1e-6, 1e9) | st.integers(1, 10**9))
def test_every_estimate_is_read_as_written(hours: float):
    found = plan.parse(f"{HEAD}gpu_hours: {hours!r}").plan.phases[0].gpu_hours
    assert found is not None
    assert math.isclose(found, hours, rel_tol=1e-15)


PRINTED = st.characters(codec="utf-8", exclude_categories=["Cc", "Cn", "Zl", "Zp"], exclude_characters="\ufeff")


@given(st.text(PRINTED))
def test_every_quoted_text_is_read_as_written(text: str):
    quoted = json.dumps(text, ensure_ascii=False)
    assert plan.parse(f"{HEAD}env: {{A: {quoted}}}").plan.phases[0].env == (("A", text),)
