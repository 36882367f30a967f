"""From fields that were read to the models. A draft is a record that waits for what the whole plan says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from widelane.models.plan import Accept, Arm, Phase, Plan, Pointer, Source

Fields = dict[str, Any]
Build = Callable[[Fields, Pointer], Any]

SHARED = ("source", "store", "env")
"""Keys that a phase takes from the plan; `env` is taken variable by variable."""


@dataclass(frozen=True, slots=True)
class Draft:
    """The fields of a record and where it stands."""

    fields: Fields
    path: Pointer


def as_model(model: Callable[..., Any]) -> Build:
    """Builds a model from the fields."""
    return lambda fields, path: model(**fields)


def environment(draft: Draft, shared: Fields) -> dict[str, str]:
    """A phase's environment: the plan's variables, then its own over them."""
    return dict(shared.get("env", ())) | dict(draft.fields.get("env", ()))


def build_plan(fields: Fields, path: Pointer) -> Plan:
    """The plan, with its defaults in every phase."""
    return Plan(
        widelane=fields["widelane"],
        task=fields.get("task"),
        phases=tuple(_phase(draft, fields) for draft in fields["phases"]),
        accept=tuple(Accept(**draft.fields) for draft in fields.get("accept", ())),
    )


def _phase(draft: Draft, shared: Fields) -> Phase:
    fields = draft.fields
    name = fields["name"]
    given = {key: shared[key] for key in SHARED if key in shared} | fields
    if given.get("source") == Source():
        del given["source"]
    if "env" in given:
        given["env"] = tuple(environment(draft, shared).items())
    if "arms" in given:
        given["arms"] = tuple(Arm(**arm.fields) for arm in given["arms"])
    if "accept" in given:
        given["accept"] = tuple(Accept(**({"phase": name} | accept.fields)) for accept in given["accept"])
    return Phase(**given)
