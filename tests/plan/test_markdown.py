"""The one `yaml widelane` block of a Markdown text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.plan.conftest import Refused
from widelane import plan
from widelane.plan.markdown import fences

PLAN = "widelane: 1\nphases:\n- name: a\n  width: 8\n"
BLOCK = f"```yaml widelane\n{PLAN}```\n"
MARKDOWN = MarkdownIt("commonmark")


def _place(text: str, origin: str = "plan.md") -> tuple[int, int]:
    return plan.parse(text, origin).marks.place("phases", 0, "width")


def test_places_are_those_of_the_file():
    assert _place(f"# Plan\n\nSome words.\n\n{BLOCK}\nMore.\n") == (9, 3)


@pytest.mark.parametrize(
    "info",
    ["yaml widelane", " yaml  widelane ", "YAML Widelane", "yaml\twidelane"],
    ids=["plain", "wide", "case", "tab"],
)
def test_the_info_string_may_have_other_spaces_and_case(info: str):
    assert _place(f"```{info}\n{PLAN}```") == (5, 3)


@pytest.mark.parametrize("marks", ["```", "````", "~~~", "~~~~~~"])
def test_fences_may_have_other_marks(marks: str):
    assert _place(f"words\n{marks}yaml widelane\n{PLAN}{marks}\n") == (6, 3)


def test_a_closing_fence_may_be_longer_but_not_shorter_or_of_other_marks():
    text = f"````yaml widelane\n{PLAN}  justification: |\n    ```\n    ~~~~\n`````\n"
    assert plan.parse(text, "plan.md").plan.phases[0].justification == "```\n~~~~\n"


@pytest.mark.parametrize("indent", [1, 2, 3])
def test_an_indented_block_loses_its_indentation_and_no_place(indent: int):
    text = "".join(f"{' ' * indent}{line}\n" for line in BLOCK.splitlines())
    assert _place(text) == (5, 3 + indent)


def test_lines_indented_less_than_the_fence_keep_their_places():
    text = "  ```yaml widelane\nwidelane: 1\n phases:\n   - name: a\n     width: 8\n  ```\n"
    assert _place(text) == (5, 6)


@pytest.mark.parametrize("marker", ["- ", "* ", "+   ", "1. ", "12) "])
def test_a_block_may_stand_in_a_list_item(marker: str):
    indent = " " * len(marker)
    block = "".join(f"{indent}{line}\n" for line in BLOCK.splitlines())
    assert _place(f"{marker}Compute:\n\n{block}") == (7, 3 + len(marker))
    assert _place(f"{marker}{block.removeprefix(indent)}") == (5, 3 + len(marker))


def test_a_block_may_stand_in_an_item_of_an_item():
    block = "".join(f"     {line}\n" for line in BLOCK.splitlines())
    assert _place(f"1. one\n   - two\n\n{block}\nwords\n") == (8, 8)


@pytest.mark.parametrize(
    "shown",
    [
        f"````markdown\n{BLOCK}````\n",
        "~~~\n" + BLOCK + "~~~\n",
        "".join(f"    {line}\n" for line in BLOCK.splitlines()),
        "".join(f"> {line}\n" for line in BLOCK.splitlines()),
        f"<!--\n{BLOCK}-->\n",
        "`` ```yaml widelane ``\n",
        "```yaml\nwidelane: 2\n```\n",
        "```yaml widelane example\nx\n```\n",
        "```yaml widelane `x`\n",
        "```\nnever closed in this item\n",
    ],
    ids=["longer", "other", "indented", "quoted", "comment", "code", "plain", "longer info", "no fence", "inner"],
)
def test_what_only_shows_a_block_is_none(shown: str):
    if "never closed" in shown:
        shown = "- " + shown.replace("\n", "\n  ").rstrip(" ")
    assert _place(f"{shown}\n{BLOCK}") == (shown.count("\n") + 6, 3)


def test_no_block_is_told_with_what_to_write(refused: Refused):
    (problem,) = refused("# Plan\n\nEight GPUs, please.\n", "plan.md")
    assert (problem.code, problem.line, problem.column) == ("no_block", 1, 1)
    assert "```yaml widelane" in problem.fix


def test_a_plan_in_a_block_of_another_name_is_pointed_at(refused: Refused):
    (problem,) = refused(f"# Plan\n\n  ```yaml\n{PLAN}```\n", "plan.md")
    assert (problem.code, problem.line, problem.column) == ("no_block", 3, 3)


def test_two_blocks_are_told_with_their_lines(refused: Refused):
    problems = refused(f"{BLOCK}\n{BLOCK}\n{BLOCK}", "plan.md")
    assert [(problem.code, problem.line) for problem in problems] == [("several_blocks", 8), ("several_blocks", 15)]
    assert all("lines 1, 8, 15" in problem.message for problem in problems)


def test_a_block_that_never_ends_is_told_where_it_opens(refused: Refused):
    (problem,) = refused(f"words\n\n```yaml widelane\n{PLAN}", "plan.md")
    assert (problem.code, problem.line) == ("open_block", 3)


def test_problems_in_a_block_are_told_at_the_place_in_the_file(refused: Refused):
    text = "# Plan\n\n- x\n\n  ```yaml widelane\n  widelane: 1\n  phases:\n  - name: a\n    width: '8'\n  ```\n"
    (problem,) = refused(text, "plan.md")
    assert (problem.line, problem.column) == (9, 12)


def test_broken_yaml_in_a_block_is_told_at_the_place_in_the_file(refused: Refused):
    (problem,) = refused("# Plan\n\n  ```yaml widelane\n  widelane: 1\n  phases: a: b\n  ```\n", "plan.md")
    assert (problem.code, problem.line, problem.column) == ("bad_yaml", 5, 12)


@pytest.mark.parametrize("ending", ["\r\n", "\r"])
def test_other_line_ends_change_no_place(ending: str):
    text = f"# Plan\n\nwords\n{BLOCK}".replace("\n", ending)
    assert _place(text) == (8, 3)


def test_a_byte_order_mark_is_no_column():
    assert plan.parse("\ufeff" + PLAN).marks.place("widelane") == (1, 1)
    assert _place("\ufeff" + BLOCK) == (5, 3)


@pytest.mark.parametrize("origin", ["<argument>", "notes.txt", "plan.md", "PLAN.MARKDOWN"])
def test_markdown_is_known_by_its_block(origin: str):
    assert _place(f"# Plan\n\n{BLOCK}", origin) == (7, 3)


@pytest.mark.parametrize("origin", ["<argument>", "notes.txt", "plan.yaml", "plan.yml", "plan.json"])
def test_yaml_is_known_by_its_keys(origin: str):
    text = f"# a comment\n{PLAN}  why: |\n    # words\n    ```yaml widelane\n    ```\n"
    assert _place(text, origin) == (5, 3)


@pytest.mark.parametrize("text", ["# Plan\n\nEight GPUs.\n", "words\n\n```yaml\na: b\n```\n"])
def test_markdown_without_a_block_is_known_by_its_lines(text: str, refused: Refused):
    assert [problem.code for problem in refused(text)] == ["no_block"]


def _tokens(text: str) -> list[tuple[str, int]]:
    return [(token.info.strip(), token.map[0]) for token in MARKDOWN.parse(text) if token.type == "fence" and token.map]


# A text that goes on in the next line would be one paragraph with it; each of these is a block of its own.
TEXTS = ["words\n", "# Head", "- item\n", "1. one\n", "  words\n", "   words\n", "    deep\n", "<!-- a -->\n"]
FENCES = ["```", "```yaml widelane", "````", "~~~", "~~~ python", "  ```", "   ```", "   ~~~~", "    ```", "- ```a"]
LINES = [*TEXTS, *FENCES, "```a`b\n", "", "     ~~~"]


@given(st.lists(st.sampled_from(LINES), max_size=12))
@example(["- item", "```yaml widelane", "words", "```"])
@example(["- item", "", "      ```", "  words", "", "```yaml widelane"])
def test_blocks_are_those_that_a_markdown_parser_finds(parts: list[str]):
    lines = "\n".join(parts).split("\n")
    assert [(fence.info, fence.opening) for fence in fences(lines)] == _tokens("\n".join(lines))


@given(st.integers(0, 3), st.lists(st.sampled_from(["words", "", "# Head", "- item\n", "~~~\nx\n~~~"]), max_size=6))
def test_the_place_of_a_key_is_true_whatever_stands_before_and_around_it(indent: int, before: list[str]):
    block = [" " * indent + line for line in BLOCK.splitlines()]
    lines = "\n".join([*before, "", "# Compute", *block]).split("\n")
    line, column = _place("\n".join(lines))
    assert lines[line - 1][column - 1 :] == "width: 8"
