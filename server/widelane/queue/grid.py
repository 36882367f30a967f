"""Grids: which combinations of values a phase has."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from math import prod
from typing import Any

from widelane.models.nearest import nearest
from widelane.models.plan import Pointer
from widelane.plan.drafts import Fields
from widelane.plan.reading import Reading, named
from widelane.queue.scalars import JOBS_LIMIT, Scalar

Axis = tuple[str, tuple[Scalar, ...]]
Combination = tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """Keys, and the values of each combination in their order."""

    keys: tuple[str, ...]
    combinations: tuple[Combination, ...]


def grid_of(fields: Fields, at: Reading, path: Pointer) -> Grid | None:
    """The combinations of a phase; None without a grid, or after a report.

    The product of `grid` and the groups of `zip`, the last key varying fastest, less `exclude`, and `include` behind.
    """
    if not any(name in fields for name in ("grid", "zip", "include")):
        if "exclude" in fields:
            at.report_at((*path, "exclude"), "contradiction", "`exclude` without a grid.", "Remove it, or add `grid`.")
        return None
    groups: list[list[Axis]] = [[axis] for axis in fields.get("grid", ())]
    for number, group in enumerate(fields.get("zip", ())):
        if not _goes_together(group, at, (*path, "zip", number)):
            return None
        if group:
            groups.append(list(group))
    keys = tuple(key for group in groups for key, _ in group)
    if not _named_once(keys, at, path):
        return None
    count = prod(len(group[0][1]) for group in groups) if groups else 0
    if count > JOBS_LIMIT:
        key = "grid" if at.has(path, "grid") else "zip"
        message = f"This grid has {count:,} combinations."
        at.report_at((*path, key), "too_many_jobs", message, f"A run has at most {JOBS_LIMIT:,} jobs.")
        return None
    columns = [list(zip(*(values for _, values in group), strict=True)) for group in groups]
    found = [tuple(itertools.chain.from_iterable(row)) for row in itertools.product(*columns)] if groups else []
    found = _without(fields.get("exclude", ()), keys, found, at, path)
    included = _included(fields.get("include", ()), keys, at, path)
    if included is None:
        return None
    keys = keys or included[0]
    return Grid(keys, (*found, *included[1]))


def _goes_together(group: tuple[Axis, ...], at: Reading, path: Pointer) -> bool:
    lengths = {key: len(values) for key, values in group}
    if len(set(lengths.values())) <= 1:
        return True
    told = ", ".join(f"`{key}` has {length}" for key, length in lengths.items())
    at.report_at(path, "bad_value", f"Values of `zip` go together, but {told}.", "Give each the same number of values.")
    return False


def _named_once(keys: tuple[str, ...], at: Reading, path: Pointer) -> bool:
    twice = sorted({key for key in keys if keys.count(key) > 1})
    for key in twice:
        at.report_at((*path, "zip"), "duplicate_key", f"`{key}` is in the grid twice.", "Keep one.")
    return not twice


def _without(
    excluded: tuple[Any, ...], keys: tuple[str, ...], found: list[Combination], at: Reading, path: Pointer
) -> list[Combination]:
    """The combinations that no entry of `exclude` names; an entry that names none is a mistake."""
    for number, entry in enumerate(excluded):
        here = (*path, "exclude", number)
        unknown = [key for key, _ in entry if key not in keys]
        for key in unknown:
            at.report_at((*here, key), "unknown_key", f"{named(key)} is no key of this grid.", _meant(key, keys))
        if unknown or not entry:
            continue
        wanted = [(keys.index(key), {value.word for value in values}) for key, values in entry]
        left = [row for row in found if not all(row[place].word in words for place, words in wanted)]
        if len(left) == len(found):
            message = "This leaves nothing out: no combination has these values."
            at.report_at(here, "no_match", message, "Write the values as the grid does, or remove it.")
        found = left
    return found


def _included(
    included: tuple[Any, ...], keys: tuple[str, ...], at: Reading, path: Pointer
) -> tuple[tuple[str, ...], list[Combination]] | None:
    rows: list[Combination] = []
    fine = True
    for number, entry in enumerate(included):
        here = (*path, "include", number)
        values = dict(entry)
        keys = keys or tuple(values)
        for key in [key for key in values if key not in keys]:
            at.report_at((*here, key), "unknown_key", f"{named(key)} is no key of this grid.", _meant(key, keys))
            fine = False
        missing = [key for key in keys if key not in values]
        if missing:
            message = f"This combination has no {', '.join(f'`{key}`' for key in missing)}."
            at.report_at(here, "missing_key", message, "Give every key of the grid a value.")
            fine = False
        else:
            rows.append(tuple(values[key] for key in keys))
    return (keys, rows) if fine else None


def _meant(key: str, keys: tuple[str, ...]) -> str:
    guess = nearest(key, keys)
    return f"Did you mean `{guess}`?" if guess else f"Keys of the grid: {', '.join(keys)}."
