"""Time of one dispatch_status: 1,000 runs in the ledger, 100 of them live and each on a machine that reports.

Every run walked 16 rungs in 7 zones before. Live runs are asked in turn, as 100 callers would, while a writer adds an
event to another live run before each question, so that nothing can be kept from the last time.

    python benchmarks/dispatch_status.py [QUESTIONS]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from widelane import plan
from widelane.config import GcpSettings, Settings
from widelane.dispatcher import Client, SimTarget
from widelane.dispatcher.assembly import make_bench
from widelane.dispatcher.places import journal_path
from widelane.dispatcher.submission import Submission
from widelane.lanes.clock import SystemClock
from widelane.ledger import Journal
from widelane.ledger import events as ev
from widelane.models.attempt import Outcome, Scope
from widelane.models.verdict import Rung
from widelane.router import judge
from widelane.store import open_store

GOAL_MS = 50.0
RUNS, LIVE = 1000, 100
ZONES = 7
THEN = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = """\
widelane: 1
phases:
  - name: capture
    intent: capture-7b
    axes: {draw: 20}
    gpu_hours: 8
    spot_tolerant: true
    width: 8
    command: python3 capture.py {draw}
    outputs: ["out/{draw}.json"]
"""


def walked(run_id: str, ladder: tuple[Rung, ...]) -> list[ev.Event]:
    """A walk in which every zone of every rung was out of stock."""
    events: list[ev.Event] = [ev.PhaseStarted(units=20), ev.WalkStarted(number=1, ladder=ladder)]
    for index, rung in enumerate(ladder):
        for zone in range(ZONES):
            attempt = intended(f"{run_id}-1-{len(events)}", index, f"zone-{zone}")
            failed = ev.AttemptFailed(
                attempt_id=attempt.attempt_id,
                outcome=Outcome.CAPACITY,
                scope=Scope.ZONE,
                code="ZONE_RESOURCE_POOL_EXHAUSTED",
                message="no stock",
                body="x" * 1000,
                lane=rung.lane,
                width=rung.width,
            )
            events += [attempt, failed]
    return events


def intended(attempt_id: str, rung: int, zone: str) -> ev.AttemptIntended:
    """One create."""
    return ev.AttemptIntended(
        attempt_id=attempt_id,
        walk=1,
        rung=rung,
        zone=zone,
        name=f"wl-{attempt_id}",
        request_id="00000000-0000-4000-8000-000000000001",
        fence_seconds=86400,
        wait_seconds=600,
        sent_at=THEN.isoformat(),
        deadline=(THEN + timedelta(hours=1)).isoformat(),
        spec_key=f"specs/d/{attempt_id}.json",
    )


def held(run_id: str, ladder: tuple[Rung, ...]) -> list[ev.Event]:
    """A machine that was granted and counted its devices."""
    attempt = intended(f"{run_id}-1-last", 0, "zone-0")
    rung = ladder[0]
    selected = ev.BackendSelected(
        attempt_id=attempt.attempt_id,
        requested_width=8,
        realized_width=8,
        degraded=False,
        lane=rung.lane,
        machine_type=rung.machine_type,
        provisioning_model=rung.provisioning_model.value,
        zone="zone-0",
        reason="granted",
    )
    realized = ev.WidthRealized(attempt_id=attempt.attempt_id, realized_width=8, expected_width=8)
    return [attempt, selected, realized]


def progress() -> bytes:
    """What a host reports."""
    gpus = [{"gpu": f"GPU-{number}", "done": 1, "running": "9"} for number in range(8)]
    told: dict[str, Any] = {"total": 20, "succeeded": 8, "failed": 0, "running": 8, "gpus": gpus, "state": "running"}
    return json.dumps(told).encode()


def fill(home: Path, journal: Journal) -> list[str]:
    """Write all the runs; the ids of the live ones."""
    gcp = GcpSettings(project="p", regions=("us-central1",))
    settings = Settings(home=home, gcp=gcp).simulated("http://127.0.0.1:9")
    parsed = plan.parse(PLAN, "<argument>", str(home))
    verdict = judge(parsed, make_bench(settings))
    submission = Submission(settings, parsed, verdict)
    live: list[str] = []
    ladder = verdict.phases[0].ladder
    _, request = submission.prepare(phase=None, fresh=False, sim=SimTarget("http://127.0.0.1:9"))
    store = open_store(request.store_url)
    for number in range(RUNS):
        run_id = f"r0101-{number:08x}"
        dispatch = f"{run_id}-1"
        phases = tuple(phase.model_copy(update={"dispatch_id": dispatch}) for phase in request.phases)
        with journal.transaction():
            journal.append(run_id, request.model_copy(update={"phases": phases}))
            for event in walked(run_id, ladder):
                journal.append(run_id, event, dispatch)
            if number % (RUNS // LIVE):
                journal.append(run_id, ev.PhaseEnded(state="exhausted", reason="capacity"), dispatch)
                journal.append(run_id, ev.RunEnded(state="exhausted"))
            else:
                live.append(run_id)
                for event in held(run_id, ladder):
                    journal.append(run_id, event, dispatch)
        store.put(f"leases/{run_id}-1-last/progress.json", progress())
    return live


def main() -> int:
    """Print the times against the goal; 1 when they are over it."""
    questions = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory(prefix="widelane-bench-") as name:
        home = Path(name)
        journal = Journal(journal_path(home), SystemClock())
        try:
            live = fill(home, journal)
            client = Client(Settings(home=home))
            times: list[float] = []
            for number in range(questions):
                other = live[(number + 1) % len(live)]
                journal.append(other, ev.Trouble(code="lane_unknown", message="no answer"), f"{other}-1")
                began = time.perf_counter()
                client.status(live[number % len(live)])
                times.append(1000 * (time.perf_counter() - began))
        finally:
            journal.close()
    cuts = statistics.quantiles(times, n=100)
    print(f"{RUNS} runs, {LIVE} live, {16 * ZONES} attempts each; {questions} questions")
    print(f"dispatch_status: median {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, longest {max(times):.1f} ms")
    print(f"goal: p99 {GOAL_MS:g} ms")
    return 0 if cuts[98] <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
