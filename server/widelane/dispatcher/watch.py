"""Signs that a machine is held for nothing: several GPUs without work, or work that doesn't move. Pure.

Nothing here ends work. What is said goes into the journal, from where the next supervisor goes on counting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from widelane.ledger.events import GpusIdle, WorkQuiet
from widelane.models.dispatch import GpuProgress

_NOTE_SHARE = 1 / 3
"""Of the time to the first advice: from then on the journal remembers since when GPUs are idle."""
_LONGEST_GAP = timedelta(minutes=10)
"""After a longer time without a look, what was true before it is only taken to have lasted if nothing moved."""


@dataclass(frozen=True, slots=True)
class WatchRules:
    """The policy as the watch needs it."""

    idle_gpus: int
    advisory: timedelta
    loud: timedelta
    quiet: timedelta
    """First sign of a hang: no unit began or ended for as long as this."""
    gap: timedelta
    """Second sign: still none after as long as this."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a host reported: GPUs held, units running and over, and which unit each GPU is at."""

    held: int
    running: int
    over: int
    gpus: tuple[GpuProgress, ...]
    stage: str

    @property
    def idle(self) -> int:
        """GPUs without a unit."""
        return max(0, self.held - sum(bool(gpu.running) for gpu in self.gpus))


@dataclass(slots=True)
class Watch:
    """The watch over one lease; `idle` and `quiet` are what the journal has of it."""

    rules: WatchRules
    attempt_id: str
    requested_width: int
    idle: GpusIdle | None = None
    quiet: WorkQuiet | None = None
    _idle_since: datetime | None = field(default=None, init=False)
    _quiet_since: datetime | None = field(default=None, init=False)
    _last: Sample | None = field(default=None, init=False)
    _looked: datetime | None = field(default=None, init=False)

    def look(self, now: datetime, sample: Sample) -> Sequence[GpusIdle | WorkQuiet]:
        """What a look says that wasn't said before."""
        if self._looked is None:
            self._take_over(sample)
        moved = self._last is None or (sample.over, sample.gpus, sample.stage) != (
            self._last.over,
            self._last.gpus,
            self._last.stage,
        )
        if moved and self._looked is not None and now - self._looked > _LONGEST_GAP:
            self._idle_since = None
        said: list[GpusIdle | WorkQuiet] = [*self._look_for_idle(now, sample)]
        said += self._look_for_quiet(now, sample, moved=moved)
        self._last, self._looked = sample, now
        return said

    def _take_over(self, sample: Sample) -> None:
        """Another supervisor began to count; if no unit ended since its last word, its count holds."""
        if self.idle is not None and self.idle.over == sample.over:
            self._idle_since = datetime.fromisoformat(self.idle.since)
        if self.quiet is not None and self.quiet.over == sample.over:
            self._quiet_since = datetime.fromisoformat(self.quiet.since)
            self._last = sample

    def _look_for_idle(self, now: datetime, sample: Sample) -> list[GpusIdle]:
        if sample.held < self.rules.idle_gpus or sample.idle < self.rules.idle_gpus:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        since = self._idle_since
        known = self.idle
        if known is not None and (since is None or known.since != since.isoformat()):
            self.idle = None
            return [known.model_copy(update={"level": "over"})]
        if since is None:
            return []
        lasted = now - since
        due = [
            level
            for level, after in (
                ("noted", self.rules.advisory * _NOTE_SHARE),
                ("advisory", self.rules.advisory),
                ("loud", max(self.rules.loud, self.rules.advisory)),
            )
            if lasted >= after
        ]
        if not due or (known is not None and known.level == due[-1]):
            return []
        self.idle = GpusIdle.model_validate(
            self._facts(since, lasted, sample) | {"level": due[-1], "idle": sample.idle, "stage": sample.stage}
        )
        return [self.idle]

    def _look_for_quiet(self, now: datetime, sample: Sample, *, moved: bool) -> list[WorkQuiet]:
        if moved or self._quiet_since is None:
            self._quiet_since = now
        since, known = self._quiet_since, self.quiet
        if known is not None and known.since != since.isoformat():
            self.quiet = None
            return [known.model_copy(update={"level": "over"})]
        lasted = now - since
        level = "noted" if lasted >= self.rules.quiet else ""
        if known is not None and lasted >= self.rules.quiet + self.rules.gap:
            level = "suspected"
        if not level or (known is not None and known.level in (level, "suspected")):
            return []
        self.quiet = WorkQuiet.model_validate(self._facts(since, lasted, sample) | {"level": level})
        return [self.quiet]

    def _facts(self, since: datetime, lasted: timedelta, sample: Sample) -> dict[str, object]:
        return {
            "attempt_id": self.attempt_id,
            "since": since.isoformat(),
            "minutes": round(lasted.total_seconds() / 60, 1),
            "requested_width": self.requested_width,
            "realized_width": sample.held,
            "running": sample.running,
            "over": sample.over,
        }
