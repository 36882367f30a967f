"""The page about the simulated cloud and the scenarios that ship are true."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.simworld import ATLAS, CASES
from widelane.models.plan import ProvisioningModel
from widelane.simcloud import client, scenario_file
from widelane.simcloud.scenario import Combination, FaultKind, Method

pytestmark = pytest.mark.slow

SHIPPED = {"eight-is-free": 8, "eight-is-gone": 4, "two-is-left": 2, "one-is-left": 1}


@pytest.fixture
def page(repo: Path) -> str:
    return (repo / "docs" / "simcloud.md").read_text(encoding="utf-8")


def block(page: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_the_page_prints_what_the_page_says(page, repo, tmp_path):
    made = client.ensure_running(repo / "examples" / "scenarios" / "eight-is-gone.yaml", tmp_path)
    code = block(page, "python").replace("http://127.0.0.1:8087", made.url)
    ran = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
    assert client.stop(made)
    assert ran.stdout == block(page, "text"), ran.stderr


def test_the_scenario_of_the_page_can_be_read(page):
    scenario = scenario_file.parse(block(page, "yaml"), "page", ATLAS, CASES)
    assert len(scenario.faults) == 2


def test_the_page_names_every_key_fault_and_method(page):
    keys = {*scenario_file.TOP_KEYS, *scenario_file.STOCK_KEYS, *scenario_file.FAULT_KEYS}
    kinds, methods = {kind.value for kind in FaultKind}, {method.value for method in Method}
    assert not {word for word in keys | kinds | methods if word not in page}


@pytest.mark.parametrize(("name", "widest"), SHIPPED.items())
def test_a_shipped_scenario_has_its_widest_machine_and_no_wider_one(repo, name, widest):
    scenario = scenario_file.read(repo / "examples" / "scenarios" / f"{name}.yaml", ATLAS, CASES)
    stocked = {
        (machine_type, model.value): row.gpus
        for machine_type, row in ATLAS.machine_types.items()
        for model in ProvisioningModel
        for zone in ATLAS.offered(machine_type)
        if scenario.rule_for(Combination(zone, machine_type, model)).count
    }
    assert max(stocked.values()) == widest
    assert {model for _, model in stocked} == {"FLEX_START"}
    assert all(limit >= 64 for limit in scenario.quotas["us-central1"].values())


def test_every_shipped_scenario_is_one_of_those(repo):
    assert {path.stem for path in (repo / "examples" / "scenarios").iterdir()} == set(SHIPPED)
