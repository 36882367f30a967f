"""Whatever the text is, the answer is a plan or problems that stand in it."""

from __future__ import annotations

import shlex
from typing import Any

import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from widelane import plan
from widelane.errors import PlanError
from widelane.models.plan import ParsedPlan
from widelane.plan.command import bare_text
from widelane.plan.keys import ACCEPT, ARM, NARROW_BECAUSE, NEEDS, PHASE, PIN, PLAN, SOURCE

NAMES = sorted(
    {name for record in (ACCEPT, ARM, NARROW_BECAUSE, NEEDS, PHASE, PIN, PLAN, SOURCE) for name in record.keys}
)
EXAMPLES = sorted(
    {
        key.kind.example
        for record in (ACCEPT, ARM, NARROW_BECAUSE, NEEDS, PHASE, PIN, PLAN)
        for key in record.keys.values()
    }
)
WORDS = [
    *NAMES,
    *EXAMPLES,
    "none",
    "null",
    "~",
    "true",
    ".nan",
    "1e400",
    "-1",
    "0",
    "9" * 30,
    "a b",
    "'",
    '"',
    "\\",
    "<<",
]
PIECES = [
    *WORDS,
    ": ",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "!x ",
    "| ",
    ">-",
    "# ",
    "\t",
]
PIECES += [
    "---",
    "...",
    "%YAML 1.2",
    "```yaml widelane\n",
    "```",
    "~~~",
    "\u2028",
    "\x00",
    "\ufeff",
    "\r\n",
    "é",
    "🙂",
    "? ",
]

Value = st.recursive(
    st.sampled_from(
        [None, True, False, 0, 1, 8, -1, 2.5, 1e300, 10**30, "", "a", "none", "{x}", "'", "/x", "../x", "a\nb"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)


def _check(text: str, origin: str) -> ParsedPlan | None:
    """Parses, and checks that problems stand in the text and can be acted upon."""
    try:
        return plan.parse(text, origin)
    except PlanError as error:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert error.problems
        for problem in error.problems:
            assert 1 <= problem.line <= len(lines) + 1, problem
            row = lines[problem.line - 1] if problem.line <= len(lines) else ""
            assert 1 <= problem.column <= len(row) + 1, problem
            assert problem.message
            assert problem.fix
            assert "\n" not in str(problem)
        return None


@given(st.text(), st.sampled_from(["<argument>", "a.md", "a.yaml"]))
@example("\ud800", "a.yaml")
@example("a: \ud800", "<argument>")
@example("```yaml widelane\n\ud800\n```", "a.md")
@example("\x00", "a.md")
@example("%YAML 9.9\n---\na", "a.yaml")
@example("!<x", "a.yaml")
@example('"\\ud83d\\ude00"', "a.yaml")
@example("- " * 5000, "a.yaml")
@example("- " * 5000, "a.md")
@example("[" * 5000, "a.yaml")
@example("{" * 5000, "a.yaml")
@example("? " * 5000, "a.yaml")
@example("`" * 5000, "a.md")
@example("> " * 5000 + "```yaml widelane", "a.md")
def test_any_text_is_a_plan_or_problems(text: str, origin: str):
    _check(text, origin)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.sampled_from(["<argument>", "a.md", "a.yaml"]))
@example("widelane: 1\nphases: [{name: a, axes: &a {x: *a}}]", "a.yaml")
@example("widelane: 1\nphases: [{name: a, &a axes: 1, *a : 2}]", "a.yaml")
@example("? {a: 1}\n: [b]", "a.yaml")
@example("&a [*a]", "a.yaml")
@example("*a", "a.yaml")
def test_any_pieces_of_a_plan_are_a_plan_or_problems(text: str, origin: str):
    _check(text, origin)


@settings(max_examples=150)
@given(
    st.dictionaries(st.sampled_from(sorted(PHASE.keys)), Value, max_size=8),
    st.dictionaries(st.sampled_from(sorted(PLAN.keys)), Value),
)
def test_any_values_of_the_keys_are_a_plan_or_problems(phase: dict[str, Any], rest: dict[str, Any]):
    document = {"widelane": 1, "phases": [{"name": "a"} | phase]} | {
        key: value for key, value in rest.items() if key not in ("widelane", "phases") or value is None
    }
    _check(yaml.safe_dump(document, allow_unicode=True), "<argument>")


@settings(max_examples=200)
@given(st.data())
def test_a_good_plan_with_a_piece_cut_out_or_put_in_is_a_plan_or_problems(data: st.DataObject):
    text = (
        'widelane: 1\ntask: "1"\nphases:\n  - name: a\n    axes: {x: 2, y: [a, "b"]}\n    command: python x.py {x}\n'
        "    outputs: [\"{x}.json\"]\n    env: &e {A: 'b'}\n  - {name: b, after: [a], gpus: 0, env: *e}\n"
    )
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 8)))
    _check(text[:start] + data.draw(st.sampled_from(["", *PIECES])) + text[stop:], "<argument>")


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab '\"\\\n"), max_size=12))
def test_a_command_is_open_exactly_when_shell_words_cannot_split_it(text: str):
    try:
        shlex.split(text)
    except ValueError:
        splits = False
    else:
        splits = True
    assert splits == (not set(bare_text(text)) & set("'\"\\"))
