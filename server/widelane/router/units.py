"""The units of a phase: what is run, with the digests by which each is known and never run again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from widelane.errors import InputError
from widelane.models.base import UnitDigest
from widelane.models.plan import Phase
from widelane.router.commands import words_of
from widelane.router.placeholders import SHARD, SHARDS, fill
from widelane.router.work import Mode, Part, parts_of


@dataclass(frozen=True, slots=True)
class UnitSalt:
    """What a unit's result depends on besides its own words: source, inputs, and the generation of a fresh run."""

    source_digest: str = ""
    input_digests: tuple[str, ...] = ()
    generation: str | int = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing to run once. `gpus` is a count, or "all" for every GPU of the machine; `{gpus}` in argv stays open."""

    index: int
    digest: UnitDigest
    argv: tuple[str, ...]
    axes: tuple[tuple[str, str], ...]
    arm: str
    gpus: int | Literal["all"]
    outputs: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """As a host's unit list holds it."""
        return {
            "index": self.index,
            "digest": self.digest,
            "argv": list(self.argv),
            "axes": dict(self.axes),
            "arm": self.arm,
            "gpus": self.gpus,
            "outputs": list(self.outputs),
            "env": dict(self.env),
        }


@dataclass(frozen=True, slots=True)
class UnitList:
    """The units in the order in which they are pulled. `merge` runs once after the last, `setup` once a host before."""

    units: tuple[Unit, ...]
    merge: Unit | None
    setup: tuple[str, ...] | None


def static_shards(phase: Phase) -> bool:
    """Whether the phase splits by {shard}, so that the number of units is fixed by the first lease."""
    return any(part.mode is Mode.STATIC for part in parts_of(phase))


def make_units(phase: Phase, shards: int | None, salt: UnitSalt, *, group: int | None = None) -> UnitList:
    """The units of a phase. `shards` is the number of a static split; `group` the GPUs of one unit (the verdict's
    `gpus_per_shard`; absent, the plan's). The same phase and salt give the same digests at every width.

    Raises InputError for a phase without a command, and for a static split without a number.
    """
    found: list[Unit] = []
    for part in parts_of(phase):
        if part.command is None:
            raise InputError(f"phase {phase.name} has no command to run", hint="add `command` to it")
        if part.mode is Mode.STATIC and not shards:
            raise InputError(f"phase {phase.name} splits by {{shard}}, and the number of shards isn't fixed yet")
        found.extend(_part_units(phase, part, len(found), shards or 1, (salt, _gpus(phase, part, group))))
    units = tuple(found)
    return UnitList(units, _merge(phase, units, salt), _setup(phase))


def dispatch_key(units: UnitList, phase: str, min_width: int, width: int) -> str:
    """The identity of a dispatch: the same work under the same width bounds has the same key."""
    digests = [unit.digest for unit in units.units]
    merge = units.merge.digest if units.merge is not None else None
    return _digest({"units": digests, "merge": merge, "phase": phase, "min_width": min_width, "width": width})


def _gpus(phase: Phase, part: Part, group: int | None) -> int | Literal["all"]:
    if phase.gpus == 0:
        return 0
    arm = next((arm for arm in phase.arms if arm.name == part.name), None)
    declared = (arm.gpus_per_shard if arm is not None else None) or phase.gpus_per_shard
    if part.mode is Mode.LAUNCHER and part.facts.gpus is None and len(phase.arms) < 2:
        return "all"
    return declared or group or part.facts.gpus or 1


def _part_units(
    phase: Phase, part: Part, start: int, shards: int, given: tuple[UnitSalt, int | Literal["all"]]
) -> Iterator[Unit]:
    words = words_of(part.command or ())
    salt, gpus = given
    base = _base(phase, part.name, salt)
    combinations = list(_combinations(part, shards))
    for offset, axes in enumerate(combinations):
        values = {SHARD: str(offset), SHARDS: str(len(combinations)), **dict(axes)}
        argv = tuple(fill(word, values) for word in words)
        outputs = tuple(fill(output, values) for output in part.outputs)
        body = {**base, "argv": argv, "axes": dict(axes), "outputs": outputs}
        if part.mode is Mode.STATIC:
            body["split"] = [offset, len(combinations)]
        yield Unit(start + offset, UnitDigest(_digest(body)), argv, axes, part.name, gpus, outputs)


def _combinations(part: Part, shards: int) -> Iterator[tuple[tuple[str, str], ...]]:
    """Axis values of each unit, the last axis varying fastest; a static split has the same for all its shards."""
    spread = part.mode is Mode.UNITS
    axes = tuple(axis for axis in part.axes or () if spread or axis.size == 1)
    for places in product(*(range(axis.size) for axis in axes)):
        values = tuple((axis.name, axis.value(place)) for axis, place in zip(axes, places, strict=True))
        for _ in range(shards if part.mode is Mode.STATIC else 1):
            yield values


def _base(phase: Phase, arm: str, salt: UnitSalt) -> dict[str, Any]:
    return {
        "arm": arm,
        "workdir": phase.workdir or "",
        "env": dict(phase.env),
        "source": salt.source_digest,
        "inputs": list(salt.input_digests),
        "generation": str(salt.generation),
    }


def _merge(phase: Phase, units: Sequence[Unit], salt: UnitSalt) -> Unit | None:
    if phase.merge is None:
        return None
    values = {SHARDS: str(len(units))}
    argv = tuple(fill(word, values) for word in words_of(phase.merge))
    outputs = tuple(fill(output, values) for output in phase.merge_outputs)
    body = {
        **_base(phase, "", salt),
        "merge": argv,
        "outputs": outputs,
        "units": [unit.digest for unit in units],
    }
    return Unit(len(units), UnitDigest(_digest(body)), argv, (), "", 0, outputs)


def _setup(phase: Phase) -> tuple[str, ...] | None:
    return None if phase.setup is None else tuple(fill(word, {}) for word in words_of(phase.setup))


def _digest(body: Any) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
