"""The answer of plan_width: verdict, findings, widths, ladder."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from pydantic import ConfigDict, Field

from widelane.models.base import Frozen
from widelane.models.plan import ProvisioningModel
from widelane.models.quota import Admits, QuotaBinding


class Verdict(StrEnum):
    """PASS, or REVISE when any finding is an error that isn't accepted."""

    PASS = "PASS"
    REVISE = "REVISE"


class Severity(StrEnum):
    """Errors make the verdict REVISE; advice doesn't."""

    ERROR = "error"
    ADVICE = "advice"


class FindingCode(StrEnum):
    """Stable codes; each has its section in docs/findings.md."""

    UNSHARDED_WIDE = "unsharded_wide"
    NEEDLESSLY_NARROW = "needlessly_narrow"
    TOO_WIDE = "too_wide"
    LOW_EFFICIENCY = "low_efficiency"
    RAGGED_WAVE = "ragged_wave"
    BAD_GROUP = "bad_group"
    CANNOT_RESHARD = "cannot_reshard"
    IDLE_WIDTH = "idle_width"
    AXIS_UNDECLARED = "axis_undeclared"
    OFF_LADDER = "off_ladder"
    INTENT_UNKNOWN = "intent_unknown"
    DOES_NOT_FIT = "does_not_fit"
    EXCEEDS_RUN_LIMIT = "exceeds_run_limit"
    NO_ESTIMATE = "no_estimate"
    TOO_MANY_UNITS = "too_many_units"
    COMMAND_AXES = "command_axes"
    COMMAND_SHELL = "command_shell"
    COMMAND_LANE_ENV = "command_lane_env"
    CHAINED_INDEPENDENT = "chained_independent"
    WAVE_BARRIER = "wave_barrier"
    MIN_WIDTH_MIXED = "min_width_mixed"
    QUOTA_DENIES = "quota_denies"
    QUOTA_UNKNOWN = "quota_unknown"
    STATIC_SPLIT = "static_split"
    RELOAD_ORDER = "reload_order"
    SPOT_UNITS_LONG = "spot_units_long"


NEVER_ACCEPTED = frozenset(
    {
        FindingCode.UNSHARDED_WIDE,
        FindingCode.BAD_GROUP,
        FindingCode.DOES_NOT_FIT,
        FindingCode.OFF_LADDER,
        FindingCode.TOO_MANY_UNITS,
    }
)
"""Findings that no `accept` entry overrides."""


class Finding(Frozen):
    """One finding, with where it is, its numbers and a fix that an agent can apply."""

    code: FindingCode
    severity: Severity
    phase: str
    line: int
    column: int
    message: str
    fix: str
    numbers: dict[str, float | int | str] = Field(default_factory=dict)
    accepted: str | None = None
    """The reason of the `accept` entry that overrides it."""


@dataclass(frozen=True, slots=True)
class WidthRow:
    """What one width gives. `wall_hours` excludes waiting for a machine and boot.

    No model of its own but a plain record: a plan may have many thousands of them.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    width: int
    wall_hours: float
    efficiency: float
    """Useful GPU-hours over GPU-hours held, 0..1."""
    stranded_gpus: int
    shards: int
    waves: int
    binding: str = ""
    """What keeps this width from being faster: work, waves, longest_unit, setup, reload, tail, waiver or command."""
    bound_hours: float = 0.0
    """No order of the units is faster than this."""
    fill: float = 1.0
    """Units over places in all waves, 0..1."""
    saves_minutes: float = 0.0
    """Over the next narrower row."""
    static_hours: float | None = None
    """With the units dealt out before, instead of pulled; None when there is nothing to deal."""
    spot_hours: float | None = None
    """Expected on a spot machine, with what preemptions repeat; None when it would hardly end."""


@dataclass(frozen=True, slots=True)
class Economics:
    """What holds of a phase at every width. Hours of wall clock. A plain record, as `WidthRow`."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    work_hours: float
    """All units one after the other, on one group."""
    longest_unit_hours: float
    speedup_cap: float | None
    """Most that any width can be faster than one group; None without set-up and tail."""
    saturation_width: int | None
    """Wider than this, no unit is left, or a GPU spends more time in set-up and tail than at work; None as above."""
    checkpoint_minutes: float | None = None
    """The interval that loses least on spot, for checkpoints of `checkpoint_write_minutes`."""


class Rung(Frozen):
    """One way to get a machine: lane, machine type, provisioning model, and the zones to try in order."""

    lane: str
    machine_type: str
    gpu: str
    width: int
    provisioning_model: ProvisioningModel
    zones: tuple[str, ...]
    admits: Admits
    binding_quota: QuotaBinding | None = None


class Length(StrEnum):
    """Short work leads with spot."""

    SHORT = "short"
    LONG = "long"


class PhaseVerdict(Frozen):
    """The verdict on one phase."""

    name: str
    verdict: Verdict
    requested_width: int
    """The asked width, or the recommended one when none is asked; 0 for a phase without GPU."""
    recommended_width: int
    min_width: int
    binding: str
    """The term that set the recommended width."""
    units: int
    gpus_per_shard: int
    widths: tuple[WidthRow, ...]
    length: Length
    length_reason: str
    findings: tuple[Finding, ...]
    ladder: tuple[Rung, ...]
    economics: Economics | None = None


class PlanVerdict(Frozen):
    """The verdict on a plan. `plan_digest` covers the normalized plan and the policy, not the source's content."""

    verdict: Verdict
    plan_digest: str
    policy_version: str
    phases: tuple[PhaseVerdict, ...]
