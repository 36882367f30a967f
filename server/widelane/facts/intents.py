"""Kinds of work and the GPU that each needs: the shipped table, and the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from widelane.errors import ConfigError
from widelane.facts.settings import did_you_mean
from widelane.facts.table import DATA, Row, read_table
from widelane.models.catalog import Intent, MachineType

_COLUMNS = ("name", "base_gpus", "floor", "group", "gpu_mem_gib", "base", "wide", "note")
_KEYS = tuple(column for column in _COLUMNS if column != "name")
_MOST_GPUS = 64
_MOST_GPU_MEM_GIB = 10_000


def load_intents(
    extra: Mapping[str, Any] | None,
    origin: str = "",
    folder: Path = DATA,
    machine_types: Mapping[str, MachineType] | None = None,
) -> dict[str, Intent]:
    """The shipped intents and the user's (`[intents.NAME]`, read from `origin`), which may replace shipped ones.

    Raises `TableError` for the table and `ConfigError` for the user's. Machines are checked when given.
    """
    intents: dict[str, Intent] = {}
    machines = None if machine_types is None else _machine_names(machine_types)
    for row in read_table(folder, "intents.csv", _COLUMNS):
        intent = _from_row(row, machines)
        if intent.name in intents:
            raise row.fail("name", f"{intent.name} is listed twice")
        intents[intent.name] = intent
    for name, value in (extra or {}).items():
        where = f"{origin}: intents.{name}" if origin else f"intents.{name}"
        intents[name] = _from_config(name, value, where, machines)
    return intents


def _machine_names(machine_types: Mapping[str, MachineType]) -> set[str]:
    """What an intent may name: a family, or one machine type."""
    return {*machine_types, *(machine.family for machine in machine_types.values())}


def _from_row(row: Row, machines: set[str] | None) -> Intent:
    base = row.whole("base_gpus", 0, _MOST_GPUS)
    for column in ("base", "wide"):
        for word in row.words(column):
            if machines is not None and word not in machines:
                raise row.fail(column, f"{word} is neither a family nor a machine type")
    return Intent(
        name=row.text("name"),
        base_gpus=base,
        floor=row.whole("floor", min(base, 1), base),
        group=row.whole("group", min(base, 1), base),
        gpu_mem_gib=row.number("gpu_mem_gib", 0, _MOST_GPU_MEM_GIB),
        base_families=row.words("base"),
        wide_families=row.words("wide"),
        note=row.text("note"),
    )


def _from_config(name: str, value: Any, where: str, machines: set[str] | None) -> Intent:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} must be a table")
    table = cast("dict[str, Any]", value)
    for key in table:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS) or f"keys: {', '.join(_KEYS)}"
            raise ConfigError(f"{where}.{key} is not a key", hint=hint)
    base = _whole(table, "base_gpus", where, 1, (0, _MOST_GPUS))
    lowest = min(base, 1)
    memory = table.get("gpu_mem_gib", 0)
    if isinstance(memory, bool) or not isinstance(memory, int | float) or not 0 <= memory <= _MOST_GPU_MEM_GIB:
        raise ConfigError(f"{where}.gpu_mem_gib must be a number from 0 to {_MOST_GPU_MEM_GIB}, not {memory!r}")
    note = table.get("note", "")
    if not isinstance(note, str):
        raise ConfigError(f"{where}.note must be text")
    return Intent(
        name=name,
        base_gpus=base,
        floor=_whole(table, "floor", where, base, (lowest, base)),
        group=_whole(table, "group", where, lowest, (lowest, base)),
        gpu_mem_gib=float(memory),
        base_families=_names(table, "base", where, machines),
        wide_families=_names(table, "wide", where, machines),
        note=note,
    )


def _whole(table: Mapping[str, Any], key: str, where: str, default: int, bounds: tuple[int, int]) -> int:
    value = table.get(key, default)
    least, most = bounds
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(f"{where}.{key} must be a whole number from {least} to {most}, not {value!r}")
    return value


def _names(table: Mapping[str, Any], key: str, where: str, machines: set[str] | None) -> tuple[str, ...]:
    value: Any = table.get(key, [])
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    names = tuple(item for item in items if isinstance(item, str))
    if len(names) != len(items):
        raise ConfigError(f"{where}.{key} must be a list of machine families, not {value!r}")
    for name in names:
        if machines is not None and name not in machines:
            raise ConfigError(
                f'{where}.{key}: "{name}" is neither a family nor a machine type', hint=did_you_mean(name, machines)
            )
    return names
