"""No limit in money, anywhere that a limit could be set: prices are reported and never decided on."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

import click
import pytest
from pydantic import BaseModel

from tests.house.sources import ROOT
from widelane import config, plan
from widelane.cli.main import verbs
from widelane.tools.dispatch import DispatchInput
from widelane.tools.dispatch_status import DispatchStatusInput
from widelane.tools.plan_width import PlanWidthInput
from widelane.tools.quota_check import QuotaCheckInput
from widelane.tools.release import ReleaseInput

TABLES = ROOT / "server" / "widelane" / "facts" / "data"
INPUTS: tuple[type[BaseModel], ...] = (
    DispatchInput,
    DispatchStatusInput,
    PlanWidthInput,
    QuotaCheckInput,
    ReleaseInput,
)

MONEY = {"usd", "eur", "euro", "euros", "dollar", "dollars", "cents", "price", "prices", "pricing", "cost", "costs"}
MONEY |= {"spend", "spending", "money", "credit", "credits", "bill", "billing", "invoice", "afford"}
COUNTED = {"seconds", "minutes", "hours", "days", "walks", "attempts", "units", "width", "run", "runs", "bytes", "gib"}
COUNTED |= {"time", "requests", "retries", "zones", "events", "lines", "per"}


def _speaks_of_money(name: str) -> bool:
    """Whether a key names money, or is a bare budget that could be one."""
    words = set(re.findall(r"[a-z]+", name.lower()))
    return bool(words & MONEY) or bool(words & {"budget", "budgets"} and not words & COUNTED)


@pytest.mark.parametrize("name", ["max_usd", "budget", "cost-limit", "max_spend", "price_cap", "hourly_budget"])
def test_a_limit_in_money_is_recognised(name: str):
    assert _speaks_of_money(name)


@pytest.mark.parametrize("name", ["wait_budget_seconds", "walks_per_day", "paid_lanes", "max_width", "setup_minutes"])
def test_other_limits_are_not_taken_for_one(name: str):
    assert not _speaks_of_money(name)


def _table_names() -> Iterator[str]:
    for path in sorted(TABLES.glob("*.csv")):
        if path.name == "prices.csv":
            continue
        with path.open(encoding="utf-8", newline="") as stream:
            rows = csv.DictReader(stream)
            yield from (f"{path.name}: {column}" for column in rows.fieldnames or ())
            if path.name == "policy.csv":
                yield from (f"policy.csv: {row['name']} in {row['unit']}" for row in rows)


def _schema_names(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "properties":
                yield from value
            yield from _schema_names(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _schema_names(value)


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    yield from (word for option in command.params for word in (option.name or "", *option.opts))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _options(inner, context)


def test_no_policy_or_fact_table_sets_a_limit_in_money():
    names = list(_table_names())
    assert len(names) > 20
    assert not [name for name in names if _speaks_of_money(name)]


def test_no_key_of_a_plan_sets_a_limit_in_money():
    names = set(_schema_names(plan.schema()))
    assert {"phases", "width"} <= names
    assert not [name for name in names if _speaks_of_money(name)]


def test_no_key_of_the_configuration_sets_a_limit_in_money():
    names = set(re.findall(r"^[#\s]*\[?([\w.]+)\]?\s*(?:=|$)", config.template(), re.MULTILINE))
    assert "project" in names
    assert not [name for name in names if _speaks_of_money(name)]


def test_no_option_of_the_command_line_sets_a_limit_in_money():
    names = set(_options(verbs, click.Context(verbs)))
    assert {"--sim", "--json"} <= names
    assert not [name for name in names if _speaks_of_money(name)]


@pytest.mark.parametrize("given", INPUTS)
def test_no_argument_of_a_tool_sets_a_limit_in_money(given: type[BaseModel]):
    names = set(_schema_names(given.model_json_schema()))
    assert names
    assert not [name for name in names if _speaks_of_money(name)]
