"""docs/plan.md shows what is so: its plan, its problems and its keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from widelane import plan
from widelane.errors import PlanError
from widelane.models.verdict import NEVER_ACCEPTED
from widelane.plan.keys import ACCEPT, ARM, NARROW_BECAUSE, NEEDS, PHASE, PIN, PLAN, SOURCE
from widelane.plan.records import Record

TABLES = {
    "a plan": PLAN,
    "a phase": PHASE,
    "`needs`": NEEDS,
    "`source`": SOURCE,
    "`pin`": PIN,
    "`narrow_because`": NARROW_BECAUSE,
    "an entry of `accept`": ACCEPT,
    "an arm": ARM,
}


@pytest.fixture
def page(repo: Path) -> Path:
    return repo / "docs" / "plan.md"


def _table(record: Record) -> str:
    rows = [
        f"| `{name}` | {key.kind.wanted} | {key.doc}{' Required.' if key.required else ''} |\n"
        for name, key in record.keys.items()
    ]
    return "| Key | Wants | Meaning |\n|---|---|---|\n" + "".join(rows)


def test_the_page_is_itself_a_plan(page: Path):
    phases = plan.read(page).plan.phases
    assert [phase.name for phase in phases] == ["generate", "judge"]
    assert [axis.size for axis in phases[0].axes or ()] == [2, 10]
    assert all(phase.source is not None for phase in phases)


def test_the_problems_on_the_page_are_those_that_are_told(page: Path):
    text = page.read_text(encoding="utf-8")
    found = re.search(r"```yaml\n(.*?)```.*?```text\n(.*?)```", text, re.DOTALL)
    assert found is not None
    with pytest.raises(PlanError) as caught:
        plan.parse(found[1], "plan.yaml")
    assert str(caught.value) + "\n" == found[2]


def test_every_key_is_on_the_page_as_the_tables_say_it(page: Path):
    text = page.read_text(encoding="utf-8")
    made = "".join(f"### Keys of {title}\n\n{_table(record)}\n" for title, record in TABLES.items())
    assert text.partition("## Every key\n\n")[2] == made.rstrip("\n") + "\n"


def test_the_page_names_what_no_one_can_override(page: Path):
    assert all(f"`{code}`" in page.read_text(encoding="utf-8") for code in NEVER_ACCEPTED)


@pytest.mark.parametrize(
    "snippet", ["axes: none\nwhy: each step needs the one before", "axes: {model: [small, large], seed: [007, 011]}"]
)
def test_the_shorter_pieces_on_the_page_can_be_read(snippet: str, page: Path):
    lines = [line.strip() for line in page.read_text(encoding="utf-8").splitlines()]
    assert all(any(line in shown for shown in lines) for line in snippet.removeprefix("axes: {").split("\n"))
    plan.parse("widelane: 1\nphases:\n- name: a\n" + "".join(f"  {line}\n" for line in snippet.split("\n")))
