"""What an agent proposes: a plan, its phases, and where each key stands in the text."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from widelane.models.base import Frozen

Pointer = tuple[str | int, ...]
"""Path of a key in the plan: ("phases", 0, "width")."""


class ProvisioningModel(StrEnum):
    """How a machine is bought, in the Compute Engine API's words; lanes without the notion use STANDARD."""

    SPOT = "SPOT"
    FLEX_START = "FLEX_START"
    STANDARD = "STANDARD"


class Axis(Frozen):
    """A shardable axis. `values` keep the spelling of the plan; a bare size n stands for "0".."n-1"."""

    name: str
    size: int = Field(ge=0)
    values: tuple[str, ...] | None = None

    def value(self, index: int) -> str:
        """The text substituted for this axis at `index`."""
        return str(index) if self.values is None else self.values[index]


class Needs(Frozen):
    """What one machine must hold: GPU memory per GPU, host memory and boot disk, in GiB."""

    gpu_mem_gib: float | None = None
    ram_gib: float | None = None
    disk_gib: float | None = None


class Pin(Frozen):
    """Restricts the walk; it still walks the rungs that are left. Needs a reason."""

    reason: str
    lane: str | None = None
    provisioning_model: ProvisioningModel | None = None
    zone: str | None = None


class NarrowKind(StrEnum):
    """Checkable reasons to stay narrow."""

    ORDER_DEPENDENT = "order_dependent"
    RATE_LIMITED = "rate_limited"
    LICENCE_SEATS = "licence_seats"
    SHARED_STATE = "shared_state"


class NarrowBecause(Frozen):
    """A waiver for needlessly_narrow; the numbers cap the useful width."""

    kind: NarrowKind
    calls: float | None = None
    calls_per_minute: float | None = None
    seats: int | None = None
    path: str | None = None


class Accept(Frozen):
    """An override of a finding that can be overridden; shown in every status."""

    code: str
    phase: str
    reason: str


class Source(Frozen):
    """The code shipped to the machine: a folder, or a git revision."""

    path: str | None = None
    git: str | None = None
    rev: str | None = None


Command = str | tuple[str, ...]
"""One text split by shell-word rules, or an argv."""


class Arm(Frozen):
    """An independent part of a phase that shares its request."""

    name: str
    axes: tuple[Axis, ...] | None = None
    command: Command | None = None
    outputs: tuple[str, ...] = ()
    min_width: int | None = None
    gpus_per_shard: int | None = None
    gpu_hours: float | None = None
    unit_minutes: float | tuple[float, ...] | None = None


class Phase(Frozen):
    """One phase of work. Hours and minutes are of wall clock on one reference GPU group unless said otherwise."""

    name: str
    intent: str | None = None
    axes: tuple[Axis, ...] | None = None
    """None: undeclared. Empty: declared `none`."""
    why: str | None = None
    gpu_hours: float | None = None
    """Total on one reference GPU."""
    unit_minutes: float | tuple[float, ...] | None = None
    wall_minutes: float | None = None
    setup_minutes: float = 0.0
    tail_minutes: float = 0.0
    checkpoint_minutes: float | None = None
    checkpoint_write_minutes: float | None = None
    """What writing one checkpoint takes."""
    reload_minutes: tuple[tuple[str, float], ...] = ()
    """(axis, minutes): what a shard pays when its next unit has another value of that axis."""
    width: int | None = None
    min_width: int | None = None
    gpus: int | None = None
    """Only 0 is legal: an API or CPU phase."""
    gpus_per_shard: int | None = None
    needs: Needs = Needs()
    setup: Command | None = None
    command: Command | None = None
    outputs: tuple[str, ...] = ()
    merge: Command | None = None
    merge_outputs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    resumable: bool | None = None
    spot_tolerant: bool = False
    time_limit_hours: float | None = None
    pin: Pin | None = None
    hold: bool = False
    justification: str | None = None
    narrow_because: NarrowBecause | None = None
    arms: tuple[Arm, ...] = ()
    accept: tuple[Accept, ...] = ()
    image: str | None = None
    source: Source | None = None
    store: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()
    workdir: str | None = None
    inputs: tuple[str, ...] = ()


class Plan(Frozen):
    """A versioned plan."""

    widelane: int
    task: str | None = None
    phases: tuple[Phase, ...]
    accept: tuple[Accept, ...] = ()


class Marks:
    """Where each key of a plan stands: 1-based line and column by pointer.

    A pointer that isn't in the text answers with its nearest parent that is.
    """

    __slots__ = ("_places",)

    def __init__(self, places: dict[Pointer, tuple[int, int]]) -> None:
        self._places = places

    def place(self, *pointer: str | int) -> tuple[int, int]:
        """(line, column) of the key, or of its nearest parent; (1, 1) for an empty map."""
        while pointer:
            found = self._places.get(pointer)
            if found is not None:
                return found
            pointer = pointer[:-1]
        return self._places.get((), (1, 1))


class ParsedPlan:
    """A plan with its places and where it was read from (a path, or `<argument>`)."""

    __slots__ = ("folder", "marks", "origin", "plan")

    def __init__(self, plan: Plan, marks: Marks, origin: str, folder: str | None) -> None:
        self.plan = plan
        self.marks = marks
        self.origin = origin
        self.folder = folder
        """Folder that relative paths of the plan start from; None when the text came as an argument."""

    def as_json(self) -> dict[str, Any]:
        """The normalized plan: defaults left out, no places."""
        return self.plan.model_dump(mode="json", exclude_defaults=True)
