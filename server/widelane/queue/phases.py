"""The phases of a manifest, each with its jobs. A manifest without `phases` is one phase."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from widelane.models.plan import Pointer
from widelane.plan.drafts import Draft, Fields
from widelane.plan.reading import Reading
from widelane.queue.conditions import rules_of
from widelane.queue.expand import Around, Made, Template
from widelane.queue.graph import PhaseNeeds
from widelane.queue.grid import Grid, grid_of
from widelane.queue.header import Header, breaker_of, split_conditions, wave_of
from widelane.queue.needs import WrittenNeed
from widelane.queue.scalars import Scalar
from widelane.queue.text import check_slots

ONLY = "jobs"
"""Name of the phase of a manifest that has none."""


@dataclass(frozen=True, slots=True)
class ReadPhase:
    """A phase: its part of the spec, its jobs, and what they wait for."""

    needs: PhaseNeeds
    spec: dict[str, Any]
    allow_empty: bool

    @property
    def made(self) -> list[Made]:
        """Its jobs."""
        return list(self.needs.made)


def read_phases(fields: Fields, header: Header, at: Reading, *, commandless: bool = False) -> list[ReadPhase]:
    """Every phase that could be read, in the order of the text."""
    drafts: tuple[Draft, ...] = fields.get("phases", ())
    if "phases" not in fields:
        drafts = (Draft({**_own(fields), "name": ONLY}, ()),)
    _named_once(drafts, at)
    return [_read_phase(draft, header, at, commandless) for draft in drafts]


def _own(fields: Fields) -> Fields:
    """What the manifest's top has of a phase: its jobs. How they run is the run's."""
    return {key: fields[key] for key in ("jobs", "grid", "zip", "include", "exclude", "template") if key in fields}


def _read_phase(draft: Draft, header: Header, at: Reading, commandless: bool) -> ReadPhase:
    fields, path = draft.fields, draft.path
    common, own = split_conditions(fields, at, path) if path else ([], ())
    env = fields.get("env", ()) if path else ()
    around = Around(
        phase=fields["name"],
        default_cmd=header.default_cmd,
        rules=rules_of(fields, header.rules) if path else header.rules,
        defaults=header.rules,
        salt=header.salt,
        env=env,
        preconditions=(*header.preconditions, *own),
        prefix=fields["name"] if path else "",
        commandless=commandless,
    )
    made = list(_jobs(fields, path, around, at))
    if not made and not fields.get("allow_empty") and path and not at.problems:
        fix = "Give it jobs, or write `allow_empty: true`."
        at.report_at((*path, "name"), "empty_phase", f"The phase `{fields['name']}` has no jobs.", fix)
    needs: tuple[WrittenNeed, ...] = (*fields.get("depends_on", ()), *fields.get("needs", ()))
    for need in needs:
        check_slots(need.name, (), at)
    spec: dict[str, Any] = {"name": fields["name"], "max_parallel": fields.get("max_parallel") if path else None}
    spec["wave"] = wave_of(fields.get("wave"))
    spec["preconditions"] = common
    if "breaker" in fields and path:
        spec["breaker"] = breaker_of(fields["breaker"])
    given = {key: value for key, value in spec.items() if value or key == "breaker"}
    return ReadPhase(PhaseNeeds(fields["name"], path, made, needs), given, bool(fields.get("allow_empty")))


def _jobs(fields: Fields, path: Pointer, around: Around, at: Reading) -> Iterator[Made]:
    for number, job in enumerate(fields.get("jobs", ())):
        template = Template(job, (), around, at)
        if template.fine and (made := template.make((), number)) is not None:
            yield made
    grid = grid_of(fields, at, path)
    if "template" not in fields and grid is None:
        return
    draft = fields.get("template") or Draft({}, path)
    if grid is None and any(key in fields for key in ("grid", "zip", "include")):
        return
    yield from _combinations(draft, grid or Grid((), ((),)), around, at)


def _combinations(draft: Draft, grid: Grid, around: Around, at: Reading) -> Iterator[Made]:
    template = Template(draft, grid.keys, around, at)
    if not template.fine or not _names_every_key(template, grid, at):
        return
    for number, row in enumerate(grid.combinations):
        made = template.make(row, number)
        if made is not None:
            yield made


def _names_every_key(template: Template, grid: Grid, at: Reading) -> bool:
    """An id that leaves a key out would be that of several jobs."""
    if template.id is None or len(grid.combinations) < 2:
        return True
    named = {slot.name for slot in template.id.slots}
    places = [place for place, key in enumerate(grid.keys) if key in named]
    first: dict[tuple[str, ...], tuple[Scalar, ...]] = {}
    for row in grid.combinations:
        known = tuple(row[place].word for place in places)
        if known not in first:
            first[known] = row
            continue
        other = first[known]
        missing = [
            key for place, key in enumerate(grid.keys) if key not in named and row[place].word != other[place].word
        ]
        if not missing:
            return True
        ident = str(template.id.fill({key: value.word for key, value in zip(grid.keys, row, strict=True)}))
        message = (
            f"`{ident}` would be the id of {_told(grid.keys, other)} and of {_told(grid.keys, row)}: "
            f"it doesn't name {', '.join(f'`{key}`' for key in missing)}."
        )
        fix = f"Add {' and '.join(f'`${{{key}}}`' for key in missing)} to the id, or remove `id`: ids are then made."
        at.report(template.id.node, "duplicate_id", message, fix)
        return False
    return True


def _told(keys: tuple[str, ...], row: tuple[Scalar, ...]) -> str:
    return "{" + ", ".join(f"{key}: {value.word}" for key, value in zip(keys, row, strict=True)) + "}"


def _named_once(drafts: tuple[Draft, ...], at: Reading) -> None:
    seen: dict[str, Pointer] = {}
    for draft in drafts:
        name = draft.fields["name"]
        if name in seen:
            line = at.places[(*seen[name], "name")][0]
            message = f"Two phases are named `{name}`; the first is in line {line}."
            at.report_at((*draft.path, "name"), "duplicate_name", message, "Give each its own name.")
        seen.setdefault(name, draft.path)
