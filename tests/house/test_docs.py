"""The docs name what the program has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.house.sources import ROOT, modules, tracked
from widelane.facts.policy import policy_settings
from widelane.models.verdict import NEVER_ACCEPTED, FindingCode

DOCS = ROOT / "docs"
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


def _text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def test_every_noun_is_in_the_glossary():
    nouns = {
        node.name
        for module in modules()
        if module.room == "models"
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    assert not {noun for noun in nouns if f"`{noun}`" not in _text("glossary.md")}


def test_every_type_named_in_the_glossary_exists():
    nouns = {node.name for module in modules() for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef)}
    rows = [line.split("|")[2] for line in _text("glossary.md").splitlines() if line.startswith("|")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert named <= nouns


def test_every_finding_has_its_section_and_says_whether_it_can_be_accepted():
    page = _text("findings.md")
    sections = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    assert sections == [code.value for code in FindingCode]
    rows = re.findall(r"^\| \[(\w+)\]\(#\1\) \| (error|advice) \| ?(yes|never|) \|$", page, re.MULTILINE)
    assert [code for code, _, _ in rows] == sections
    assert {code for code, _, accepted in rows if accepted == "never"} == {code.value for code in NEVER_ACCEPTED}
    assert all((severity == "advice") == (accepted == "") for _, severity, accepted in rows)


def test_every_threshold_named_with_the_findings_is_a_key_of_the_policy():
    named = set(re.findall(r"`(\w+_(?:share|minutes|hours|seconds|ratio|fill|efficiency|cap))`", _text("findings.md")))
    of_a_plan = {"unit_minutes", "time_limit_hours", "gpu_hours", "checkpoint_minutes", "reload_minutes"}
    assert named - of_a_plan <= set(policy_settings())


def test_every_incident_names_a_test_that_is_there():
    page = _text("incidents.md")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| What happened")]
    named = re.findall(r"\| (tests/[\w/]+\.py)::(test_\w+) \|$", page, re.MULTILINE)
    assert len(named) == len(rows)
    assert not [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    ]


def test_every_decision_is_numbered_and_in_the_index():
    index = _text("decisions/README.md")
    records = [path.name for path in sorted((DOCS / "decisions").glob("*.md")) if path.name != "README.md"]
    assert all(re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name) for name in records)
    assert len({name[:4] for name in records}) == len(records)
    assert not [name for name in records if f"({name})" not in index]


def test_every_page_is_in_the_index():
    index = _text("README.md")
    pages = [path.name for path in DOCS.glob("*.md") if path.name != "README.md"]
    assert not [name for name in pages if f"({name})" not in index]


def test_every_link_between_files_leads_somewhere():
    broken = [
        f"{name}: {target}"
        for name in tracked()
        if name.endswith(".md")
        for target in LINK.findall((ROOT / name).read_text(encoding="utf-8"))
        if "://" not in target and not target.startswith("mailto:")
        if not (ROOT / name).parent.joinpath(target).exists()
    ]
    assert not broken


def test_every_room_is_in_the_architecture():
    picture = _text("architecture.md")
    rooms = {module.room for module in modules()}
    assert not [room for room in rooms if not re.search(rf"(^|\| ){room}\b", picture, re.MULTILINE)]


def test_every_target_of_the_makefile_says_what_it_does():
    makefile = Path(ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == set(re.findall(r"^([a-z]+):.*## .+$", makefile, re.MULTILINE))
