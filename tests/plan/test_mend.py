"""Changes to a plan's text leave everything else of it as it stands."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from widelane import plan
from widelane.models.mend import Mend
from widelane.models.plan import Pointer

WIDTH: Pointer = ("phases", 0, "width")
ORIGIN = "a.yaml"


def _to(value: str | None, *path: str | int, word: str = "") -> Mend:
    return Mend(path or WIDTH, value, word)


def _mend(text: str, *mends: Mend, origin: str = ORIGIN) -> str:
    return plan.mended(text, origin, mends)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("phases:\n- name: a\n  width: 1\n", "phases:\n- name: a\n  width: 8\n"),
        ("phases:\n- name: a\n  width:   1   # why\n", "phases:\n- name: a\n  width:   8   # why\n"),
        ("phases:\n- width: 1 # why\n  name: a\n", "phases:\n- width: 8 # why\n  name: a\n"),
        ("phases: [{name: a, width: 1}]", "phases: [{name: a, width: 8}]"),
        ("phases: [{width: 1, name: a}] # all", "phases: [{width: 8, name: a}] # all"),
        ("phases:\n- name: a\n  width:\n    # here\n    1\n", "phases:\n- name: a\n  width:\n    # here\n    8\n"),
        ('{"phases": [{"name": "a", "width": 1}]}', '{"phases": [{"name": "a", "width": 8}]}'),
        ("phases:\n- name: a\n  width: 1", "phases:\n- name: a\n  width: 8"),
    ],
)
def test_a_value_is_replaced_where_it_stands(before: str, after: str):
    assert _mend(before, _to("8")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("phases:\n- name: a\n  width: 1\n  gpus: 0\n", "phases:\n- name: a\n  gpus: 0\n"),
        ("phases:\n- name: a\n  width: 1  # why\n  gpus: 0\n", "phases:\n- name: a\n  # why\n  gpus: 0\n"),
        ("phases:\n- name: a\n  width: 1", "phases:\n- name: a\n"),
        ("phases:\n- width: 1\n  name: a\n", "phases:\n- name: a\n"),
        ("phases:\n- width: 1 # why\n  name: a\n", "phases:\n- width: 1 # why\n  name: a\n"),
        ("phases: [{name: a, width: 1, gpus: 0}]", "phases: [{name: a, gpus: 0}]"),
        ("phases: [{name: a, width: 1}] # all", "phases: [{name: a}] # all"),
        ("phases: [{width: 1, name: a}]", "phases: [{name: a}]"),
        ("phases: [{name: a, # A\n  width: 1}]", "phases: [{name: a, # A\n  width: 1}]"),
        ("phases: [{width: 1, # why\n  name: a}]", "phases: [{width: 1, # why\n  name: a}]"),
        ("phases:\n- name: a\n  # above\n  width: 1\n# end\n", "phases:\n- name: a\n  # above\n# end\n"),
    ],
)
def test_a_key_is_taken_out_and_its_comment_stays(before: str, after: str):
    assert _mend(before, _to(None)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("phases:\n- command: run {modle} {modle}/{x}\n", "phases:\n- command: run {model} {model}/{x}\n"),
        ("phases:\n- command: [run, '{modle}'] # {modle}\n", "phases:\n- command: [run, '{model}'] # {modle}\n"),
        (
            "phases:\n- command: >-\n    run\n    {modle}\n  name: a\n",
            "phases:\n- command: >-\n    run\n    {model}\n  name: a\n",
        ),
        (
            "phases:\n- command: run {modle}\n  name: '{modle}'\n",
            "phases:\n- command: run {model}\n  name: '{modle}'\n",
        ),
    ],
)
def test_a_word_is_replaced_in_its_own_key_only(before: str, after: str):
    assert _mend(before, _to("{model}", "phases", 0, "command", word="{modle}")) == after


@pytest.mark.parametrize(
    "text",
    [
        "task: &w 1\nphases:\n- {name: a, width: *w}\n",
        "phases:\n- {name: a, width: &w 1}\n- {name: b, width: *w}\n",
        "phases:\n- {name: a, width: !x 1}\n",
        "phases:\n- {name: a, width: [1]}\n",
        "phases:\n- {name: a}\n",
        "phases: []\n",
        "phases: 3\n",
        "",
    ],
)
@pytest.mark.parametrize("value", ["8", None])
def test_what_stands_elsewhere_or_is_no_value_is_left_alone(text: str, value: str | None):
    if value is None and "[1]" in text:
        return
    assert _mend(text, _to(value)) == text


def test_words_behind_an_alias_in_a_list_are_left_alone():
    text = "task: &t '{modle}'\nphases:\n- outputs: [*t, '{modle}.json']\n"
    mended = _mend(text, _to("{model}", "phases", 0, "outputs", word="{modle}"))
    assert mended == "task: &t '{modle}'\nphases:\n- outputs: [*t, '{model}.json']\n"


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_byte_order_mark_stay(ending: str, mark: str):
    lines = ["phases:", "- name: a", "  gpus: 0  # none", "  width: 1", "  after: []", ""]
    text = mark + ending.join(lines)
    assert _mend(text, _to("8")) == text.replace("width: 1", "width: 8")
    assert _mend(text, _to(None)) == text.replace(f"  width: 1{ending}", "")


def test_mixed_line_ends_stay_each_as_it_is():
    text = "phases:\r\n- name: a\n  width: 1\r\n"
    assert _mend(text, _to("8")) == "phases:\r\n- name: a\n  width: 8\r\n"


def test_prose_around_a_block_in_a_list_item_stays():
    text = (
        "# Plan\x0b\u2028\n\nwidth: 1\n\n- item\n\n  ```yaml widelane\n  widelane: 1\n  phases:\n  - name: a\n"
        "    width: 1 # é\n  ```\n\nwidth: 1\n"
    )
    mended = _mend(text, _to("8"), origin="a.md")
    assert mended == text.replace("    width: 1 # é", "    width: 8 # é")


NAMES = st.sampled_from(["name", "intent", "gpu_hours", "width", "hold", "why"])


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.lists(NAMES, min_size=1, max_size=6, unique=True), min_size=1, max_size=3),
    st.sampled_from([None, True, False]),
    st.data(),
)
def test_only_the_keys_that_were_named_are_changed(keys: list[list[str]], flow: bool | None, data: st.DataObject):
    phases = [{key: data.draw(st.sampled_from(["1", "x y", "ü"])) for key in names} for names in keys]
    text = yaml.safe_dump({"phases": phases}, sort_keys=False, allow_unicode=True, default_flow_style=flow)
    if not flow:
        commented = (line + data.draw(st.sampled_from(["", "  # note"])) for line in text.splitlines())
        text = "\n".join(line for line in commented) + "\n"
    mends: dict[Pointer, Mend] = {}
    for number, phase in enumerate(phases):
        for key in data.draw(st.sets(st.sampled_from(sorted(phase)))):
            mends[("phases", number, key)] = Mend(("phases", number, key), data.draw(st.sampled_from(["8", None])))
    mended = _mend(text, *mends.values())
    after: Any = yaml.safe_load(mended)
    for number, phase in enumerate(phases):
        for key, value in phase.items():
            mend = mends.get(("phases", number, key))
            left = (after["phases"][number] or {}).get(key)
            if mend is None or (mend.value is None and left is not None):
                assert left == yaml.safe_load(yaml.safe_dump(value))
            else:
                assert left == (None if mend.value is None else 8)
    assert re.findall("# note", mended) == re.findall("# note", text)
