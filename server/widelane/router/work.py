"""How much work a phase is, and how many GPUs it can use: the facts that every number of the verdict starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from widelane.models.catalog import Intent
from widelane.models.plan import Arm, Axis, Command, NarrowBecause, NarrowKind, Phase
from widelane.router.commands import CommandFacts, read_command
from widelane.router.placeholders import GPUS, SHARD, SHARDS
from widelane.router.schedule import Reload

_SPLIT = frozenset({SHARD, SHARDS})
_NOTHING = CommandFacts()


class Mode(StrEnum):
    """How work spreads over GPUs."""

    UNITS = "units"
    """One unit per combination of axis values, pulled by whichever group is free."""
    STATIC = "static"
    """{shard} of {shards}: one part a group, fixed at the first lease."""
    LAUNCHER = "launcher"
    """One unit that spreads over its GPUs itself."""
    SINGLE = "single"
    """One unit on one group; nothing spreads."""


@dataclass(frozen=True, slots=True)
class Part:
    """A phase, or one arm of it. `where` is the path of its keys below the phase."""

    name: str
    where: tuple[str | int, ...]
    axes: tuple[Axis, ...] | None
    command: Command | None
    outputs: tuple[str, ...]
    facts: CommandFacts
    mode: Mode

    @property
    def units(self) -> int:
        """Combinations of axis values."""
        return prod(axis.size for axis in self.axes) if self.axes else 1


@dataclass(frozen=True, slots=True)
class Work:
    """A phase as arithmetic sees it. Hours are of wall clock on one group of `group` GPUs.

    `segments` lists (count, hours) of units in the order in which they are pulled; None without an estimate.
    `fixed` is the count of GPUs that the command fixes; `cap` is the most groups that can work at once by a waiver,
    and `floor_hours` the time that the waiver's limit takes at any width.
    """

    mode: Mode
    parts: tuple[Part, ...]
    units: int
    group: int
    fixed: int | None
    segments: tuple[tuple[int, float], ...] | None
    total: float
    """Group-hours of all units; 0 without an estimate."""
    setup: float
    tail: float
    cap: int | None
    floor_hours: float
    reloads: tuple[Reload, ...] = ()
    restarts: bool = False
    """Whether a preemption loses all of it, and not only the units that were at work."""
    checkpoint: tuple[float, float] | None = None
    """Hours of work between checkpoints within a unit, and hours that writing one takes."""

    @property
    def numbers(self) -> tuple[object, ...]:
        """Everything that wall clock depends on: works with equal numbers take equally long at every width."""
        shape = (self.mode, self.units, self.group, self.fixed, self.cap, self.restarts)
        return (*shape, self.segments, self.setup, self.tail, self.floor_hours, self.reloads, self.checkpoint)

    @property
    def usable(self) -> int | None:
        """GPUs that can be busy at once, None for as many as there are."""
        if self.mode is Mode.LAUNCHER:
            return self.fixed
        if self.mode is Mode.SINGLE:
            return self.group
        if self.mode is Mode.STATIC and self.units == 1:
            return None
        return self.units * self.group


def parts_of(phase: Phase) -> tuple[Part, ...]:
    """The phase's arms, or the phase itself."""
    if not phase.arms:
        return (_part("", (), phase.axes, phase.command, phase.outputs),)
    return tuple(
        _part(
            arm.name,
            ("arms", index),
            phase.axes if arm.axes is None else arm.axes,
            phase.command if arm.command is None else arm.command,
            arm.outputs or phase.outputs,
        )
        for index, arm in enumerate(phase.arms)
    )


def measure(phase: Phase, intent: Intent | None) -> Work:
    """The work of a phase."""
    parts = parts_of(phase)
    mode = _joint_mode(parts)
    fixed = _fixed(parts) if mode in (Mode.LAUNCHER, Mode.SINGLE) else None
    group = _group(phase, intent, fixed)
    units = sum(part.units if part.mode is Mode.UNITS else 1 for part in parts)
    if mode is Mode.STATIC:
        units = parts[0].units
    cap, floor_hours = _waiver(phase.narrow_because)
    segments = _segments(phase, parts, group)
    return Work(
        mode=mode,
        parts=parts,
        units=units,
        group=group,
        fixed=fixed,
        segments=segments,
        total=sum([count * hours for count, hours in segments or ()]),
        setup=phase.setup_minutes / 60,
        tail=phase.tail_minutes / 60,
        cap=cap,
        floor_hours=floor_hours,
        reloads=_reloads(phase, parts[0]) if phase.reload_minutes else (),
        restarts=not (mode in (Mode.UNITS, Mode.STATIC) if phase.resumable is None else phase.resumable),
        checkpoint=_checkpoint(phase),
    )


def _part(
    name: str,
    where: tuple[str | int, ...],
    axes: tuple[Axis, ...] | None,
    command: Command | None,
    outputs: tuple[str, ...],
) -> Part:
    facts = _NOTHING if command is None else read_command(command)
    return Part(name, where, axes, command, outputs, facts, _mode(axes or (), command, facts))


def _mode(axes: tuple[Axis, ...], command: Command | None, facts: CommandFacts) -> Mode:
    if any(axis.size > 1 and (command is None or axis.name in facts.names) for axis in axes):
        return Mode.UNITS
    if facts.names & _SPLIT:
        return Mode.STATIC
    if GPUS in facts.names or facts.launcher:
        return Mode.LAUNCHER
    return Mode.SINGLE


def _joint_mode(parts: Sequence[Part]) -> Mode:
    """Arms run side by side, so that two of them are units, whatever each is alone."""
    return parts[0].mode if len(parts) == 1 else Mode.UNITS


def _fixed(parts: Sequence[Part]) -> int | None:
    return parts[0].facts.gpus


def _group(phase: Phase, intent: Intent | None, fixed: int | None) -> int:
    arms = [arm.gpus_per_shard for arm in phase.arms if arm.gpus_per_shard is not None]
    if arms or phase.gpus_per_shard is not None:
        return max([*arms, phase.gpus_per_shard or 1])
    return fixed or (intent.group if intent is not None else 1) or 1


def _segments(phase: Phase, parts: tuple[Part, ...], group: int) -> tuple[tuple[int, float], ...] | None:
    if not phase.arms:
        count = parts[0].units
        return _own_segments(count, phase.unit_minutes, phase.gpu_hours, phase.wall_minutes, group)
    own = [_arm_segments(arm, part, group) for arm, part in zip(phase.arms, parts, strict=True)]
    if all(own):
        return tuple(segment for segments in own if segments for segment in segments)
    count = sum(part.units for part in parts)
    return _own_segments(count, phase.unit_minutes, phase.gpu_hours, phase.wall_minutes, group)


def _arm_segments(arm: Arm, part: Part, group: int) -> tuple[tuple[int, float], ...] | None:
    return _own_segments(part.units, arm.unit_minutes, arm.gpu_hours, None, group)


def _own_segments(
    count: int,
    unit_minutes: float | tuple[float, ...] | None,
    gpu_hours: float | None,
    wall_minutes: float | None,
    group: int,
) -> tuple[tuple[int, float], ...] | None:
    """(count, hours) runs of equal units; a list of minutes that doesn't fit the count is no estimate."""
    if isinstance(unit_minutes, tuple):
        return tuple((1, minutes / 60) for minutes in unit_minutes) if len(unit_minutes) == count else None
    if count == 0:
        return ()
    if unit_minutes is not None:
        return ((count, unit_minutes / 60),)
    if gpu_hours is not None:
        return ((count, gpu_hours / (count * group)),)
    return None if wall_minutes is None else ((count, wall_minutes / 60 / count),)


def _reloads(phase: Phase, part: Part) -> tuple[Reload, ...]:
    """The axes that reload, each with how many units in a row share a value: the last axis varies fastest."""
    minutes, stride, found = dict(phase.reload_minutes), 1, list[Reload]()
    for axis in reversed(part.axes or ()):
        if axis.name in minutes and part.mode is not Mode.SINGLE:
            found.append(Reload(stride, axis.size, minutes[axis.name] / 60))
        stride *= max(axis.size, 1)
    return tuple(found)


def _checkpoint(phase: Phase) -> tuple[float, float] | None:
    if phase.checkpoint_minutes is None:
        return None
    return phase.checkpoint_minutes / 60, (phase.checkpoint_write_minutes or 0.0) / 60


def _waiver(narrow: NarrowBecause | None) -> tuple[int | None, float]:
    """The most groups at once, and the hours that the limit takes at any width."""
    if narrow is None:
        return None, 0.0
    if narrow.kind is NarrowKind.RATE_LIMITED:
        calls, pace = narrow.calls or 0.0, narrow.calls_per_minute or 0.0
        return None, calls / pace / 60 if pace else 0.0
    if narrow.kind is NarrowKind.LICENCE_SEATS:
        return narrow.seats, 0.0
    return 1, 0.0
