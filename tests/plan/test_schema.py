"""The published JSON Schema says what the parser reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.plan.test_keys import WHOLE
from tests.plan.test_problems import HEAD, KEYS
from widelane import plan
from widelane.errors import PlanError
from widelane.plan.keys import PHASE, PLAN
from widelane.plan.records import Key, Record

BETWEEN_KEYS = {"contradiction", "cycle", "unknown_phase", "missing_key", "duplicate_key", "duplicate_name"}
"""What a schema of single values can't say."""


def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(plan.schema())


def test_the_published_schema_is_the_one_that_the_tables_make(repo: Path):
    published = (repo / "docs" / "plan.schema.json").read_text(encoding="utf-8")
    made = json.dumps(plan.schema(), indent=2, ensure_ascii=False) + "\n"
    assert published == made, "write the JSON of widelane.plan.schema() into docs/plan.schema.json"


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(plan.schema())


def test_a_plan_with_every_key_is_valid():
    # As a text: PyYAML takes forty digits for a number.
    document = yaml.safe_load(WHOLE)
    document["phases"][2]["source"]["rev"] = "0123456789012345678901234567890123456789"
    _validator().validate(document)


def _examples(record: Record) -> list[tuple[str, Key]]:
    return list(record.keys.items())


@pytest.mark.parametrize(("name", "key"), [*_examples(PHASE)])
def test_the_example_of_each_key_of_a_phase_is_read_and_valid(name: str, key: Key):
    rest = "name: a\n  " if name != "name" else ""
    text = f"widelane: 1\nphases:\n- {rest}{name}: {key.kind.example}\n"
    document = yaml.safe_load(text)
    _validator().validate(document)
    if name == "after":
        text += "- name: generate\n"
    if name == "reload_minutes":
        text += "  axes: {model: 2}\n"
    if name == "hold":
        text = text.replace("- name: a", "- name: b\n- name: a")
    plan.parse(text)


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, key in PLAN.keys.items() if name != "widelane"])
def test_the_example_of_each_key_of_a_plan_is_read_and_valid(name: str, key: Key):
    text = f"widelane: 1\nphases: [{{name: generate}}]\n{name}: {key.kind.example}\n"
    text = text.replace("phases: [{name: generate}]\n", "", 1) if name == "phases" else text
    _validator().validate(yaml.safe_load(text))
    plan.parse(text)


def _is_valid(document: Any) -> bool:
    return _validator().is_valid(document)


@pytest.mark.parametrize("name", [name for name, (code, _) in KEYS.items() if code not in BETWEEN_KEYS])
def test_what_the_schema_refuses_the_parser_refuses_too(name: str):
    _, keys = KEYS[name]
    text = HEAD + "".join(f"  {line}\n" for line in keys.replace("§", "").split("\n"))
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    if not _is_valid(document):
        with pytest.raises(PlanError):
            plan.parse(text)


@pytest.mark.parametrize(
    "keys",
    [
        *(
            "width: 0",
            "width: '8'",
            "gpus: 8",
            "colour: red",
            "axes: {x: 0}",
            "axes: {}",
            "axes: all",
            "axes: {a b: 1}",
        ),
        *("outputs: [/a]", "outputs: [a/../b]", "outputs: a", "pin: {lane: gcp}", "narrow_because: {kind: lazy}"),
        *("accept: [{code: off_ladder, reason: x}]", "env: {a-b: c}", "secrets: {A: b}", "name: a b", "source: here"),
        *("store: outputs", "workdir: ..", "unit_minutes: []", "command: {a: b}", "gpu_hours: -1", "arms: []"),
    ],
)
def test_the_schema_refuses_what_one_value_shows(keys: str):
    document = {"widelane": 1, "phases": [{"name": "a"} | yaml.safe_load(keys)]}
    assert not _is_valid(document)
