"""Runs asked for without a plan file, and the case that a worker takes in hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.fakes.lane import FakeClock, ScriptedLane
from tests.fakes.walks import make_rung
from widelane.config import Settings
from widelane.dispatcher.assembly import open_case
from widelane.dispatcher.edge import Edge
from widelane.dispatcher.worker import Worker
from widelane.ledger import Journal, PhaseState, fold
from widelane.ledger.events import RequestedPhase, RunRequested
from widelane.models.plan import Phase, Plan
from widelane.models.verdict import Length, PhaseVerdict, Rung, Verdict, WidthRow
from widelane.store import open_store

RUN = "r0101-test"
DISPATCH = f"{RUN}-1"
LADDER = (
    make_rung("a2-ultragpu-8g", 8, "FLEX_START", zones=("us-central1-a", "us-central1-c")),
    make_rung("a2-ultragpu-8g", 8, "STANDARD", zones=("us-central1-a", "us-central1-c")),
    make_rung("a2-ultragpu-4g", 4, "FLEX_START", zones=("us-central1-a", "us-central1-c")),
    make_rung("a2-ultragpu-4g", 4, "STANDARD", zones=("us-central1-a", "us-central1-c")),
)


def make_phase(**changes: Any) -> Phase:
    values: dict[str, Any] = {
        "name": "capture",
        "intent": "capture-7b",
        "axes": ({"name": "draw", "size": 6},),
        "command": "python capture.py --draw {draw}",
        "outputs": ("out/{draw}.json",),
        "gpu_hours": 8,
    }
    return Phase.model_validate(values | changes)


def make_verdict(phase: Phase, ladder: tuple[Rung, ...], width: int = 8) -> PhaseVerdict:
    return PhaseVerdict(
        name=phase.name,
        verdict=Verdict.PASS,
        requested_width=width,
        recommended_width=width,
        min_width=phase.min_width or 1,
        binding="units",
        units=6,
        gpus_per_shard=1,
        widths=tuple(
            WidthRow(width=w, wall_hours=8 / w, efficiency=1, stranded_gpus=0, shards=w, waves=1) for w in (8, 4, 2, 1)
        ),
        length=Length.LONG,
        length_reason="",
        findings=(),
        ladder=ladder,
    )


def make_request(home: Path, phases: list[Phase], ladder: tuple[Rung, ...], **changes: Any) -> RunRequested:
    requested = tuple(
        RequestedPhase(
            dispatch_id=f"{RUN}-{number}", dispatch_key=f"key-{phase.name}", verdict=make_verdict(phase, ladder)
        )
        for number, phase in enumerate(phases, 1)
    )
    plan = Plan(widelane=1, task=changes.get("task"), phases=tuple(phases))
    values: dict[str, Any] = {
        "run_key": "run-key",
        "task": None,
        "plan": plan.model_dump(mode="json", exclude_defaults=True),
        "plan_digest": "digest",
        "origin": "plan.md",
        "phases": requested,
        "store_url": (home / "store").as_uri(),
        "runner_sha256": "0" * 64,
        "settings": Settings(home=home).model_dump(mode="json"),
    }
    return RunRequested.model_validate(values | changes)


class Bed:
    """A home with one run in it, a scripted lane, and a worker that can be killed between any two effects."""

    def __init__(
        self, home: Path, phases: list[Phase] | None = None, ladder: tuple[Rung, ...] = LADDER, **changes: Any
    ) -> None:
        self.home = home
        self.clock = FakeClock()
        self.journal = Journal(home / "ledger.db", self.clock)
        request = make_request(home, phases or [make_phase()], ladder, **changes)
        self.store = open_store(request.store_url)
        self.lane = ScriptedLane(store=self.store, clock=self.clock)
        self.lanes: dict[str, ScriptedLane] = {}
        """Lanes other than `lane`, by name; they share its clock and store."""
        self.requests = 0
        self.journal.append(RUN, request)

    def work(self, dispatch_id: str = DISPATCH, lane: ScriptedLane | None = None) -> PhaseState:
        """Carry the dispatch to its end."""
        used = lane or self.lane

        def pause(seconds: float) -> None:
            used.pause(seconds)
            for other in self.lanes.values():
                other.pause(0.0)

        edge = Edge(
            open_lane=lambda name, _request: self.lanes.get(name, used), pause=pause, request_id=self._request_id
        )
        case, work = open_case(self.journal, RUN, dispatch_id, edge)
        Worker(case, work).run()
        return self.phase(dispatch_id)

    def add_lane(self, name: str) -> ScriptedLane:
        """Another lane beside `lane`."""
        self.lanes[name] = ScriptedLane(store=self.store, clock=self.clock, name=name)
        return self.lanes[name]

    def phase(self, dispatch_id: str = DISPATCH) -> PhaseState:
        return fold(self.journal.events(RUN)).phases[dispatch_id]

    def kinds(self) -> list[str]:
        return [record.event.kind for record in self.journal.events(RUN)]

    def _request_id(self) -> str:
        self.requests += 1
        return f"00000000-0000-4000-8000-{self.requests:012d}"

    def close(self) -> None:
        self.journal.close()
