"""Kinds of work, shipped and the user's own."""

from __future__ import annotations

from typing import Any

import pytest

from widelane import facts
from widelane.errors import ConfigError


def _load(extra: dict[str, Any]) -> dict[str, Any]:
    return dict(facts.load_intents(extra, "widelane.toml", machine_types=facts.catalog().machine_types))


def test_each_documented_kind_of_work_has_its_base_and_floor() -> None:
    intents = facts.catalog().intents
    bases = {name: (intent.base_gpus, intent.floor) for name, intent in intents.items()}
    assert bases == {
        "debug": (1, 1),
        "eval": (1, 1),
        "capture-7b": (1, 1),
        "lora-7b": (1, 1),
        "ft-7b": (4, 4),
        "sweep-8g-a100": (8, 2),
        "sweep-8g-h100": (8, 8),
        "inf-70b": (8, 8),
        "ft-70b": (8, 8),
        "cpu-small": (0, 0),
        "cpu-mid": (0, 0),
        "cpu-bigmem": (0, 0),
    }


def test_every_intent_has_a_machine_of_its_base_width_or_none_by_design() -> None:
    catalog = facts.catalog()
    for intent in catalog.intents.values():
        widths = {
            machine.gpus
            for machine in catalog.machine_types.values()
            if {machine.family, machine.name} & set(intent.base_families)
        }
        assert intent.base_gpus in widths or intent.name in {"inf-70b", "ft-70b"}, intent.name


def test_a_user_adds_a_kind_of_work_and_may_replace_a_shipped_one() -> None:
    intents = _load(
        {
            "capture-13b": {"base_gpus": 2, "gpu_mem_gib": 70, "base": ["a2-ultragpu"], "wide": ["a2-ultragpu"]},
            "eval": {"base_gpus": 1, "base": ["a2-ultragpu-1g"]},
        }
    )
    added = intents["capture-13b"]
    assert (added.base_gpus, added.floor, added.group, added.gpu_mem_gib) == (2, 2, 1, 70.0)
    assert intents["eval"].base_families == ("a2-ultragpu-1g",)
    assert intents["debug"] == facts.catalog().intents["debug"]


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ("x", "widelane.toml: intents.mine must be a table", ""),
        ({"bse": ["g2"]}, "widelane.toml: intents.mine.bse is not a key", 'did you mean "base"?'),
        ({"base_gpus": 1.5}, "widelane.toml: intents.mine.base_gpus must be a whole number from 0 to 64, not 1.5", ""),
        (
            {"base_gpus": 2, "floor": 4},
            "widelane.toml: intents.mine.floor must be a whole number from 1 to 2, not 4",
            "",
        ),
        ({"group": 2}, "widelane.toml: intents.mine.group must be a whole number from 1 to 1, not 2", ""),
        ({"gpu_mem_gib": -1}, "widelane.toml: intents.mine.gpu_mem_gib must be a number from 0 to 10000, not -1", ""),
        ({"base": "g2"}, "widelane.toml: intents.mine.base must be a list of machine families, not 'g2'", ""),
        ({"wide": [1]}, "widelane.toml: intents.mine.wide must be a list of machine families, not [1]", ""),
        ({"note": 1}, "widelane.toml: intents.mine.note must be text", ""),
        (
            {"base": ["a2-ultragpy"]},
            'widelane.toml: intents.mine.base: "a2-ultragpy" is neither a family nor a machine type',
            'did you mean "a2-ultragpu"?',
        ),
    ],
)
def test_a_bad_kind_of_work_names_its_key(table: Any, message: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load({"mine": table})
    assert (caught.value.message, caught.value.hint) == (message, hint)
