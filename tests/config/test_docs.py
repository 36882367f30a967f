"""The template and docs/configuration.md have every key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.config.conftest import Load
from widelane import config, facts
from widelane.config.keys import ROOT, SECTIONS
from widelane.config.settings import Settings
from widelane.errors import ConfigError


@pytest.fixture
def page(repo: Path) -> str:
    return (repo / "docs" / "configuration.md").read_text(encoding="utf-8")


def _uncommented() -> str:
    return re.sub(r"^#(?=\S)", "", config.template(), flags=re.MULTILINE)


def _reference() -> str:
    parts: list[str] = []
    for section in (ROOT, *SECTIONS):
        head = f"### `[{section.title}]`\n\n{section.doc}\n" if section.path else "### Before any section\n"
        rows = [
            f"| `{name}` | `{key.example}` | {key.doc} | {'required' if key.required else key.default} |\n"
            for name, key in section.keys.items()
        ]
        table = "\n| Key | Such as | Meaning | Without it |\n|---|---|---|---|\n" + "".join(rows) if rows else ""
        parts.append(head + table)
    return "\n".join(parts)


def test_the_template_is_toml_that_sets_nothing():
    assert tomllib.loads(config.template()) == {}


def test_the_template_with_its_comments_taken_off_is_a_whole_configuration(load: Load):
    settings = load(_uncommented())
    assert settings.lanes == ("gcp", "slurm.NAME", "ssh.NAME", "local", "runpod")
    written = tomllib.loads(_uncommented())
    for section in SECTIONS:
        table = written
        for part in section.path:
            table = table[part]
        assert set(table["NAME"] if section.named else table) == set(section.keys)


def test_what_the_template_writes_can_be_used(load: Load):
    settings = load(_uncommented())
    facts.load_policy(settings.policy)
    facts.load_intents(settings.intents)


def test_every_key_is_on_the_page_as_the_table_says_it(page: str):
    assert page.partition("## Every key\n\n")[2] == _reference()


def test_the_file_on_the_page_can_be_used(page: str, load: Load):
    found = re.search(r"## A whole file\n\n```toml\n(.*?)```", page, re.DOTALL)
    assert found is not None
    settings = load(found[1])
    assert settings.lanes == ("gcp", "slurm.fir", "ssh.box", "local", "runpod")
    facts.load_policy(settings.policy)
    facts.load_intents(settings.intents)


def test_the_mistakes_on_the_page_are_those_that_are_told(page: str, load: Load, tmp_path: Path):
    found = re.search(r"## Mistakes.*?```toml\n(.*?)```.*?```text\n(.*?)```", page, re.DOTALL)
    assert found is not None
    with pytest.raises(ConfigError) as caught:
        load(found[1])
    assert caught.value.message.replace(f"{tmp_path / 'project'}/", "") + "\n" == found[2]


def test_every_section_has_settings():
    fields = set(Settings.model_fields) - {"home", "file"}
    assert fields == {section.path[-1] for section in SECTIONS} | set(ROOT.keys)
