"""The policy: lane order, thresholds, caps and waits, as one frozen object read from tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from widelane.errors import ConfigError, TableError
from widelane.facts.settings import KINDS, Setting, Value, did_you_mean
from widelane.facts.table import DATA, Row, read_table
from widelane.models.plan import ProvisioningModel

_FILE = "policy.csv"
_COLUMNS = ("name", "value", "unit", "kind", "min", "max", "why")
_NOT_ABOVE = (
    ("fence_min_seconds", "run_limit_seconds"),
    ("boot_disk_gib", "max_boot_disk_gib"),
    ("idle_advisory_minutes", "idle_loud_minutes"),
)
_RUNG_COLUMNS = ("family", "provisioning_models", "widths", "why")


@dataclass(frozen=True, slots=True)
class RungRule:
    """Which rungs of a machine family a ladder may have; a family without a rule has all."""

    family: str
    provisioning_models: frozenset[ProvisioningModel]
    widths: frozenset[int]
    why: str


@dataclass(frozen=True, slots=True)
class Policy:
    """Every value of `data/policy.csv` under its own name; the table says what each is and why.

    `version` is a short hash over all values, so that a verdict names the policy it was given under.
    """

    lane_order: tuple[str, ...]
    paid_lanes: tuple[str, ...]
    last_resort_lanes: tuple[str, ...]
    last_resort_width: str
    workload_failover: str
    regions: tuple[str, ...]
    widths: tuple[int, ...]
    short_order: tuple[str, ...]
    long_order: tuple[str, ...]
    short_gpu_hours: float
    spot_if_resumable: bool
    spot_mean_hours: float
    default_gain_minutes: float
    default_gain_share: float
    min_efficiency: float
    narrow_saving_share: float
    narrow_saving_minutes: float
    too_wide_ratio: float
    idle_minutes: float
    axis_silence_hours: float
    chained_hours: float
    ragged_wave_fill: float
    enumerate_cap: int
    run_limit_seconds: int
    gpu_mem_usable_share: float
    boot_disk_gib: int
    max_boot_disk_gib: int
    walks_per_day: int
    flex_wait_seconds: int
    total_wait_seconds: int
    fence_margin: float
    fence_boot_seconds: int
    fence_unknown_seconds: int
    fence_min_seconds: int
    transient_attempts: int
    preemption_rewalks: int
    boot_deaths: int
    create_seconds: int
    first_report_seconds: int
    parallel_zones: int
    hold_wait_seconds: int
    idle_gpus: int
    idle_advisory_minutes: float
    idle_loud_minutes: float
    hang_minutes: float
    hang_unit_ratio: float
    hang_gap_minutes: float
    rung_rules: Mapping[str, RungRule]
    version: str

    def models(self, *, short: bool) -> tuple[ProvisioningModel, ...]:
        """Provisioning models in the order that short or long work walks them."""
        return tuple(ProvisioningModel(name) for name in (self.short_order if short else self.long_order))


def load_policy(overrides: Mapping[str, Any] | None = None, origin: str = "", folder: Path = DATA) -> Policy:
    """The shipped policy with the user's `[policy]` on top, read from `origin`.

    Raises `TableError` for the tables and `ConfigError` for the user's values.
    """
    settings = policy_settings(folder)
    values: dict[str, Value] = {name: setting.value for name, setting in settings.items()}
    clash = _clash(values)
    if clash is not None:
        raise TableError(_FILE, _row_of(folder, clash[0]), "value", clash[1])
    for key, value in (overrides or {}).items():
        where = f"{origin}: policy.{key}" if origin else f"policy.{key}"
        if key not in settings:
            raise ConfigError(f"{where} is not a key", hint=did_you_mean(key, settings))
        try:
            values[key] = settings[key].check(value)
        except ValueError as error:
            raise ConfigError(f"{where} {error}") from None
    clash = _clash(values)
    if clash is not None:
        raise ConfigError(f"{origin}: policy.{clash[0]} {clash[1]}" if origin else f"policy.{clash[0]} {clash[1]}")
    rules = _rung_rules(folder)
    known: dict[str, Any] = dict(values)
    return Policy(**known, rung_rules=rules, version=_version(values, rules))


def policy_settings(folder: Path = DATA) -> Mapping[str, Setting]:
    """Every setting by name, with unit, bounds and reason: what documents and templates render. Raises `TableError`."""
    return _shipped() if folder == DATA else _settings(folder)


@cache
def _shipped() -> Mapping[str, Setting]:
    return _settings(DATA)


def _settings(folder: Path) -> Mapping[str, Setting]:
    settings: dict[str, Setting] = {}
    expected = {field.name for field in fields(Policy)} - {"rung_rules", "version"}
    last = 1
    for row in read_table(folder, _FILE, _COLUMNS):
        setting = _setting(row)
        last = row.line
        if setting.name in settings:
            raise row.fail("name", f"{setting.name} is listed twice")
        if setting.name not in expected:
            raise row.fail("name", f"{setting.name} is not a policy value")
        settings[setting.name] = setting
    missing = sorted(expected - settings.keys())
    if missing:
        raise TableError(_FILE, last, "name", f"{', '.join(missing)} is missing")
    return settings


def _setting(row: Row) -> Setting:
    kind, _, options = row.text("kind").partition(":")
    if kind not in KINDS:
        raise row.fail("kind", f"must be one of {', '.join(KINDS)}, not {kind!r}")
    least = row.number("min", -1e12, 1e12) if row.raw("min") else None
    most = row.number("max", -1e12, 1e12) if row.raw("max") else None
    if least is not None and most is not None and least > most:
        raise row.fail("max", f"is below min ({least:g})")
    words = tuple(options.split("|")) if options else ()
    name, unit, why = row.text("name"), row.raw("unit"), row.text("why")
    blank = Setting(name, "", unit, kind, words, least, most, why)
    try:
        return Setting(name, blank.read(row.text("value")), unit, kind, words, least, most, why)
    except ValueError as error:
        raise row.fail("value", str(error)) from None


def _clash(values: Mapping[str, Value]) -> tuple[str, str] | None:
    """The first value that doesn't go with another one, and why."""
    order, widths = values["lane_order"], values["widths"]
    for name in ("paid_lanes", "last_resort_lanes"):
        lanes = values[name]
        if not isinstance(order, tuple) or not isinstance(lanes, tuple) or not set(lanes) <= set(order):
            return name, "names a lane that lane_order doesn't have"
    if not isinstance(widths, tuple) or list(widths) != sorted(widths, reverse=True):
        return "widths", "must be listed widest first"
    for low, high in _NOT_ABOVE:
        least, most = values[low], values[high]
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            return low, f"is above {high} ({most:g})"
    return None


def _row_of(folder: Path, name: str) -> int:
    return next(row.line for row in read_table(folder, _FILE, _COLUMNS) if row.raw("name") == name)


def _rung_rules(folder: Path) -> Mapping[str, RungRule]:
    rules: dict[str, RungRule] = {}
    for row in read_table(folder, "rungs.csv", _RUNG_COLUMNS):
        family = row.text("family")
        if family in rules:
            raise row.fail("family", f"{family} is listed twice")
        for word in row.words("provisioning_models"):
            if word not in ProvisioningModel.__members__:
                known = ", ".join(ProvisioningModel.__members__)
                raise row.fail("provisioning_models", f"{word!r} is not one of {known}")
        for width in row.words("widths"):
            if not width.isdecimal():
                raise row.fail("widths", f"must be whole numbers with a semicolon between them, not {width!r}")
        models = frozenset(ProvisioningModel(word) for word in row.words("provisioning_models"))
        widths = frozenset(int(width) for width in row.words("widths"))
        rules[family] = RungRule(family, models, widths, row.text("why"))
    return rules


def _version(values: Mapping[str, Value], rules: Mapping[str, RungRule]) -> str:
    body = {
        "values": dict(values),
        "rungs": {
            name: [sorted(rule.provisioning_models), sorted(rule.widths)] for name, rule in sorted(rules.items())
        },
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
