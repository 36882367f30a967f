"""One phase on the bench: everything that its findings and its ladder are decided from."""

from __future__ import annotations

from dataclasses import dataclass

from widelane.models.catalog import Intent
from widelane.models.plan import Marks, Phase, Plan
from widelane.models.verdict import NEVER_ACCEPTED, Finding, FindingCode, Severity
from widelane.router.bench import GCP, LOCAL, Bench
from widelane.router.choosing import Choice
from widelane.router.ladder import Need, need_of, survey
from widelane.router.sheet import Sheet
from widelane.router.spot import Spot
from widelane.router.widths import Cell
from widelane.router.work import Work

Numbers = dict[str, float | int | str]


@dataclass(slots=True)
class GpuSide:
    """What only a phase with GPUs has. `legal` are all widths of the intent; `choice` those that hold a group."""

    intent: Intent
    need: Need
    legal: tuple[int, ...]
    choice: Choice
    sheet: Sheet
    asked: int | None
    requested: int
    recommended: int
    limit_hours: float

    @property
    def cell(self) -> Cell | None:
        """The numbers at the requested width."""
        return self.choice.cells.get(self.requested)


@dataclass(slots=True)
class PhaseCase:
    """A phase with its place in the plan. `gpu` is None for CPU and API phases and for an unknown intent."""

    bench: Bench
    plan: Plan
    marks: Marks
    index: int
    phase: Phase
    intent: Intent | None
    work: Work
    gpu: GpuSide | None = None

    @property
    def without_gpu(self) -> bool:
        """An API or CPU phase."""
        return self.phase.gpus == 0 or (self.intent is not None and self.intent.base_gpus == 0)

    @property
    def width(self) -> int:
        """GPUs that are requested; 0 without."""
        if self.gpu is not None:
            return self.gpu.requested
        return 0 if self.without_gpu else self.phase.width or 0

    @property
    def spot(self) -> Spot:
        """What a preemption costs this phase: boot and set-up again, before its units go on."""
        policy = self.bench.policy
        return Spot(policy.spot_mean_hours, policy.fence_boot_seconds / 3600 + self.work.setup)

    def error(
        self, code: FindingCode, at: tuple[str | int, ...], message: str, fix: str, **numbers: float | str
    ) -> Finding:
        """A finding that makes the verdict REVISE unless it is accepted. `at` is the path of a key below the phase."""
        return self._finding(code, Severity.ERROR, at, (message, fix), numbers)

    def advice(
        self, code: FindingCode, at: tuple[str | int, ...], message: str, fix: str, **numbers: float | str
    ) -> Finding:
        """A finding that changes no verdict."""
        return self._finding(code, Severity.ADVICE, at, (message, fix), numbers)

    def accepted(self, code: FindingCode) -> str | None:
        """The reason of the entry that overrides this code here."""
        if code in NEVER_ACCEPTED:
            return None
        entries = [*self.phase.accept, *self.plan.accept]
        return next((e.reason for e in entries if e.code == code.value and e.phase == self.phase.name), None)

    def _finding(
        self,
        code: FindingCode,
        severity: Severity,
        at: tuple[str | int, ...],
        text: tuple[str, str],
        numbers: dict[str, float | str],
    ) -> Finding:
        line, column = self.marks.place("phases", self.index, *at)
        return Finding(
            code=code,
            severity=severity,
            phase=self.phase.name,
            line=line,
            column=column,
            message=text[0],
            fix=text[1],
            numbers={key: round(value, 4) if isinstance(value, float) else value for key, value in numbers.items()},
            accepted=self.accepted(code) if severity is Severity.ERROR else None,
        )


def reachable(case: PhaseCase) -> tuple[str, ...]:
    """Lanes that may run the phase, in the policy's order."""
    if case.gpu is not None:
        return survey(case.bench, case.gpu.need).lanes
    if case.intent is None or case.intent.base_gpus > 0 or case.phase.gpus == 0:
        return (LOCAL,)
    found = survey(case.bench, need_of(case.phase, case.intent))
    return (GCP,) if GCP in found.lanes else (LOCAL,)
