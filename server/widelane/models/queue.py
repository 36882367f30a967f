"""The nouns of the experiment queue: what a manifest says of its jobs, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import Field

from widelane.models.base import Frozen


@dataclass(frozen=True, slots=True)
class Late:
    """A text with parts that are known when an attempt starts: texts and names in turn, texts first and last."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return "".join(f"${{{part}}}" if number % 2 else part for number, part in enumerate(self.parts))


Word = str | Late
"""A text, whole or with parts to come."""


class When(StrEnum):
    """Which end of a need counts."""

    SUCCESS = "success"
    FINISHED = "finished"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Need:
    """A job or a whole phase that is waited for."""

    name: str
    is_phase: bool = False
    when: When = When.SUCCESS

    def __str__(self) -> str:
        what = f"phase:{self.name}" if self.is_phase else self.name
        return what if self.when is When.SUCCESS else f"{what} ({self.when.value})"


@dataclass(frozen=True, slots=True)
class QueueJob:
    """One job of a run, ready to be sent. `digest` is over all that makes it another job."""

    id: str
    phase: str
    argv: tuple[Word, ...]
    needs: tuple[Need, ...]
    extras: dict[str, Any]
    """Further keys of the runner's spec, where they aren't those of the whole run."""
    digest: str


class QueueProblem(Frozen):
    """One thing wrong with a manifest, or worth a look: where, what, and how to mend it."""

    file: str
    line: int
    col: int
    code: str
    message: str
    fix: str = ""


class PlannedJob(Frozen):
    """A job as it would run."""

    id: str
    phase: str
    argv: tuple[str, ...]
    needs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    gpus: int = 1


class QueuePlan(Frozen):
    """What a manifest comes to. With errors there are no jobs."""

    project: str = ""
    host: str = "local"
    digest: str = ""
    """Of the whole: the same manifest on the same host has the same."""
    count: int = 0
    phases: tuple[str, ...] = ()
    jobs: tuple[PlannedJob, ...] = ()
    errors: tuple[QueueProblem, ...] = ()
    warnings: tuple[QueueProblem, ...] = ()


class ManifestDiff(Frozen):
    """An edited manifest against the run that it was submitted as: ids of jobs."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    same: int = 0


class JobState(StrEnum):
    """Where a job stands. The last five are ends; stuck can be released."""

    WAITING = "waiting"
    HELD = "held"
    READY = "ready"
    STARTING = "starting"
    RUNNING = "running"
    VERIFYING = "verifying"
    COOLING = "cooling"
    STUCK = "stuck"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class QueueState(StrEnum):
    """Where a run stands. The last four are ends, of which more jobs or a retry make it run again."""

    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    DONE_WITH_FAILURES = "done_with_failures"
    STALLED = "stalled"
    CANCELLED = "cancelled"

    @property
    def live(self) -> bool:
        """Whether it can still change by itself."""
        return self in (QueueState.RUNNING, QueueState.PAUSED)


class JobStatus(Frozen):
    """One job now. `why` is the one line that says why it isn't running."""

    id: str
    phase: str
    state: JobState
    reason: str = ""
    why: str = ""
    attempts: int = 0
    exit_code: int | None = None
    gpus: tuple[str, ...] = ()
    cached: bool = False
    started: str | None = None
    ended: str | None = None


class QueueAnswer(Frozen):
    """The answer of `queue submit`: started, already there, or refused with what to do."""

    run_id: str
    reason: str
    """started, already_there, updated, edited (nothing was changed)."""
    state: QueueState
    host: str
    jobs: int
    diff: ManifestDiff = ManifestDiff()
    warnings: tuple[QueueProblem, ...] = ()
    next_step: str = ""


class QueueStatus(Frozen):
    """A run now."""

    run_id: str
    project: str
    host: str
    state: QueueState
    reason: str = ""
    counts: dict[str, int] = Field(default_factory=dict[str, int])
    """Jobs by state."""
    host_reached: bool = True
    blocked: tuple[str, ...] = ()
    """What nothing can progress for, when it is stalled."""
    last_seq: int = 0
    jobs: tuple[JobStatus, ...] = ()


class QueueEvent(Frozen):
    """One line of a run's journal."""

    seq: int
    at: str
    kind: str
    job: str = ""
    body: dict[str, Any] = Field(default_factory=dict[str, Any])
