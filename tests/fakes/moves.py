"""Runs that move as a test says, in place of the dispatcher's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Lock

from widelane.errors import NotFoundError
from widelane.models.attempt import AttemptRow, Outcome
from widelane.models.dispatch import DispatchAnswer, DispatchState, PhaseStatus, RunEvent, RunStatus, UnitCounts
from widelane.models.plan import ParsedPlan, ProvisioningModel
from widelane.models.verdict import PlanVerdict


def attempt(outcome: Outcome | None, *, width: int = 8) -> AttemptRow:
    """One row of a walk."""
    return AttemptRow(
        attempt_id=f"a-{width}-{outcome}",
        lane="gcp",
        machine_type=f"a2-ultragpu-{width}g",
        width=width,
        provisioning_model=ProvisioningModel.FLEX_START,
        zone="us-central1-a",
        outcome=outcome,
        code="ZONE_RESOURCE_POOL_EXHAUSTED" if outcome is Outcome.CAPACITY else "",
    )


def status(
    state: DispatchState, *, attempts: Sequence[AttemptRow] = (), done: int = 0, width: int | None = None, seq: int = 0
) -> RunStatus:
    """A run of one phase of 20 units."""
    phase = PhaseStatus(
        name="generate",
        dispatch_id="d1",
        state=state,
        requested_width=8,
        realized_width=width,
        attempts=tuple(attempts),
        units=UnitCounts(total=20, succeeded=done),
    )
    return RunStatus(run_id="r1", state=state, plan_digest="p1", started_at="", phases=(phase,), last_seq=seq)


class MovingRuns:
    """One run, `r1`. Every look at it shows the next of `moves`; the last one stays."""

    def __init__(self, moves: Sequence[RunStatus] = ()) -> None:
        self.moves = list(moves) or [status(DispatchState.QUEUED)]
        self.submitted: list[tuple[str, str | None, bool]] = []
        self.sims: list[object] = []
        self.released: list[str] = []
        self.waited: list[tuple[float, int]] = []
        self.seen: list[str] = []
        self.gate: Event | None = None
        self._lock = Lock()

    def submit(
        self,
        parsed: ParsedPlan,
        verdict: PlanVerdict,
        *,
        phase: str | None = None,
        fresh: bool = False,
        sim: object = None,
    ) -> DispatchAnswer:
        """Start `r1`."""
        self.submitted.append((verdict.plan_digest, phase, fresh))
        self.sims.append(sim)
        return DispatchAnswer(
            started=True,
            reason="started",
            run_id="r1",
            state=DispatchState.QUEUED,
            plan_digest=verdict.plan_digest,
        )

    def status(self, run_id: str) -> RunStatus:
        """The next move."""
        if run_id != "r1":
            raise NotFoundError(f"no run {run_id!r}", hint="`widelane list` shows the runs")
        with self._lock:
            self.seen.append(run_id)
            return self.moves.pop(0) if len(self.moves) > 1 else self.moves[0]

    def wait(
        self,
        run_id: str,
        seconds: float,
        after_seq: int = 0,
        *,
        enough: Callable[[RunStatus], bool] | None = None,
    ) -> RunStatus:
        """The next move: at once, or when the gate opens or `seconds` are over."""
        self.waited.append((seconds, after_seq))
        if self.gate is not None:
            self.gate.wait(seconds)
        return self.status(run_id)

    def events(self, run_id: str, after_seq: int = 0) -> tuple[RunEvent, ...]:
        """None."""
        return ()

    def runs(self) -> tuple[RunStatus, ...]:
        """The run."""
        return (self.moves[0],)

    def release(self, run_id: str) -> RunStatus:
        """Let go."""
        found = self.status(run_id)
        self.released.append(run_id)
        return found
