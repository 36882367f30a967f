"""Files for agents: written from the tables, and checked value by value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from widelane import facts
from widelane.errors import InputError
from widelane.prompts import surfaces
from widelane.prompts.surfaces import BEGIN, END

CATALOG = facts.catalog()
POLICY = facts.load_policy()
FILES = {
    ".claude/agents/planner.md",
    ".claude/agents/efficiency-critic.md",
    ".claude/rules/compute-backend-failover.md",
    "CLAUDE.md",
}
RULE = ".claude/rules/compute-backend-failover.md"
PLANNER = ".claude/agents/planner.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    surfaces.write(tmp_path, CATALOG, POLICY)
    return tmp_path


def edit(file: Path, old: str, new: str, count: int = 1) -> None:
    text = file.read_text()
    assert old in text, old
    file.write_text(text.replace(old, new, count))


def test_what_was_written_has_no_drift_and_is_not_written_again(root: Path):
    assert {str(path.relative_to(root)) for path in root.rglob("*.md")} == FILES
    assert surfaces.check(root, CATALOG, POLICY) == []
    assert surfaces.write(root, CATALOG, POLICY) == []


def test_the_files_of_this_repository_carry_the_values_of_its_tables(repo: Path):
    assert [str(drift) for drift in surfaces.check(repo, CATALOG, POLICY)] == []


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"narrow_saving_share": 0.3}, "narrow_percent"),
        ({"narrow_saving_minutes": 12.0}, "narrow_minutes"),
        ({"min_efficiency": 0.6}, "least_efficiency"),
        ({"too_wide_ratio": 1.2}, "wide_factor"),
        ({"axis_silence_hours": 3.0}, "axis_hours"),
        ({"idle_minutes": 20.0}, "idle_minutes"),
        ({"walks_per_day": 5}, "attempt_cap"),
        ({"flex_wait_seconds": 601}, "queue_wait"),
        ({"total_wait_seconds": 5400}, "walk_wait"),
        ({"lane_order": ("slurm", "gcp", "ssh", "local", "runpod")}, "lanes"),
        ({"long_order": ("STANDARD", "FLEX_START")}, "models_long"),
        ({"widths": (8, 4, 1)}, "widths"),
        ({"widths": (8, 4, 2)}, "widths"),
        ({"rung_rules": {}}, "ladder_long"),
        ({"last_resort_width": "base"}, "last_resort_width"),
    ],
)
def test_a_policy_that_changed_is_noticed_in_the_repository(repo: Path, change: dict[str, Any], name: str):
    drifts = surfaces.check(repo, CATALOG, replace(POLICY, **change))
    assert name in {drift.name for drift in drifts}


def test_a_machine_that_changed_its_name_is_noticed_in_the_repository(repo: Path):
    old, new = "a2-ultragpu-8g", "a2-ultragpu-9g"
    machines = dict(CATALOG.machine_types)
    machines[new] = machines.pop(old).model_copy(update={"name": new})
    renamed = replace(CATALOG, machine_types=machines, offers={**CATALOG.offers, new: CATALOG.offers[old]})
    drifts = surfaces.check(repo, renamed, POLICY)
    assert {drift.found for drift in drifts if drift.expected == new} == {old}


def test_an_intent_that_is_gone_is_noticed_in_the_repository(repo: Path):
    intents = {name: intent for name, intent in CATALOG.intents.items() if name != "cpu-bigmem"}
    drifts = surfaces.check(repo, replace(CATALOG, intents=intents), POLICY)
    assert {drift.found for drift in drifts} >= {"n2-highmem-16"}


def test_a_value_too_many_is_a_drift(root: Path):
    edit(root / "CLAUDE.md", "`runpod`", "`runpod`, `ssh`")
    (drift,) = surfaces.check(root, CATALOG, POLICY)
    assert (drift.name, drift.expected, drift.found) == ("lanes", "", "ssh")
    assert "`ssh` is no value" in str(drift)


def test_other_words_around_the_same_values_are_no_drift(root: Path):
    edit(root / RULE, "What holds in every case", "Always true, 3 things to know")
    edit(root / RULE, "no capacity |", "nothing left, `STOCKOUT` |")
    edit(root / PLANNER, "Wall clock is what is scarce.", "Time is short (see `plan_width`, 12 lines below).")
    assert surfaces.check(root, CATALOG, POLICY) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "name"),
    [
        (RULE, "`600 s`", "`900 s`", "queue_wait"),
        (RULE, "`gcp`, `slurm`", "`slurm`, `gcp`", "lanes"),
        (RULE, "1. `a2-ultragpu-8g`", "1. `a2-ultragpu-4g`", "ladder_long"),
        (RULE, "1. `a2-ultragpu-8g`", "1. a2-ultragpu-8g", "ladder_long"),
        (PLANNER, "`25 %`", "`20 %`", "narrow_percent"),
        (PLANNER, "`8`, `4`, `2`, `1`", "`8`, `2`, `4`, `1`", "widths"),
        ("CLAUDE.md", "`10 min`", "`15 min`", "narrow_minutes"),
    ],
)
def test_a_value_that_was_edited_is_named_with_its_line(root: Path, file: str, old: str, new: str, name: str):
    line = next(n for n, text in enumerate((root / file).read_text().splitlines(), 1) if old in text)
    edit(root / file, old, new)
    drifts = surfaces.check(root, CATALOG, POLICY)
    assert drifts
    assert {(drift.file, drift.name) for drift in drifts} == {(file, name)}
    assert line in {drift.line for drift in drifts}
    assert all(drift.expected in str(drift) for drift in drifts)


def test_a_missing_file_and_a_missing_part_are_drifts(root: Path):
    (root / PLANNER).unlink()
    (root / "CLAUDE.md").write_text("# Mine\n")
    found = {drift.file for drift in surfaces.check(root, CATALOG, POLICY)}
    assert found == {PLANNER, "CLAUDE.md"}


def test_text_around_the_marked_part_is_kept(tmp_path: Path):
    file = tmp_path / "CLAUDE.md"
    file.write_text(f"# Mine\n\nfirst\n\n{BEGIN}\nold `7`\n{END}\n\nlast\n")
    assert file in surfaces.write(tmp_path, CATALOG, POLICY)
    text = file.read_text()
    assert text.startswith(f"# Mine\n\nfirst\n\n{BEGIN}\n")
    assert text.endswith(f"{END}\n\nlast\n")
    assert "old `7`" not in text


def test_a_claude_md_without_markers_gets_the_part_at_its_end(tmp_path: Path):
    (tmp_path / "CLAUDE.md").write_text("# Mine\n")
    surfaces.write(tmp_path, CATALOG, POLICY)
    assert (tmp_path / "CLAUDE.md").read_text().startswith(f"# Mine\n\n{BEGIN}\n")


def test_a_marker_without_its_pair_is_refused_and_the_file_left_alone(tmp_path: Path):
    file = tmp_path / "CLAUDE.md"
    file.write_text(f"text\n{BEGIN}\nmore\n")
    with pytest.raises(InputError, match="pair"):
        surfaces.write(tmp_path, CATALOG, POLICY)
    assert file.read_text() == f"text\n{BEGIN}\nmore\n"
