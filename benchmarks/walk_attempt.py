"""CPU that a walk adds per attempt: every rung of the widest ladder in seven zones, against a simulated cloud.

The cloud has no machine at all, so that each zone of each rung is one attempt. It runs in a process of its own; what is
counted is the CPU of this one, which does what a supervisor's thread does, the google-cloud-compute client included.

    python benchmarks/walk_attempt.py [ROUNDS]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from widelane import plan
from widelane.config import GcpSettings, Settings
from widelane.dispatcher import SimTarget
from widelane.dispatcher.assembly import make_bench, open_case, system_edge
from widelane.dispatcher.places import journal_path
from widelane.dispatcher.submission import Submission
from widelane.dispatcher.worker import Worker
from widelane.lanes.clock import SystemClock
from widelane.ledger import Journal
from widelane.router import judge
from widelane.simcloud.client import SimEndpoint, ensure_running, stop

GOAL_MS = 20.0
REGIONS = ("us-central1", "us-east4", "us-east5", "europe-west4", "asia-southeast1")
SCENARIO = """\
clock: {rate: 3600}
stock:
  - {zone: "*", machine_type: "*", model: "*", count: 0}
"""
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


def walk(folder: Path, sim: SimEndpoint) -> tuple[int, int, int, float]:
    """(rungs, zones of the first, attempts, CPU seconds) of one walk that finds nothing."""
    gcp = GcpSettings(project=sim.project, regions=REGIONS)
    settings = Settings(home=folder, gcp=gcp).simulated(sim.url, sim.project)
    parsed = plan.parse(PLAN, "<argument>", str(folder))
    verdict = judge(parsed, make_bench(settings))
    submission = Submission(settings, parsed, verdict)
    run_id, request = submission.prepare(phase=None, fresh=True, sim=SimTarget(sim.url))
    journal = Journal(journal_path(folder), SystemClock())
    try:
        submission.submit(journal, run_id, request)
        case, work = open_case(journal, run_id, request.phases[0].dispatch_id, system_edge())
        began = time.process_time()
        Worker(case, work).run()
        used = time.process_time() - began
        ladder = case.phase.requested.verdict.ladder
        return len(ladder), len(ladder[0].zones), len(case.phase.attempts), used
    finally:
        journal.close()


def main() -> int:
    """Print the CPU of an attempt against the goal; 1 when it is over it."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory(prefix="widelane-bench-") as name:
        scenario = Path(name) / "empty.yaml"
        scenario.write_text(SCENARIO)
        sim = ensure_running(scenario, Path(name))
        try:
            walk(Path(name) / "warm", sim)
            found = [walk(Path(name) / str(number), sim) for number in range(rounds)]
        finally:
            stop(sim)
    rungs, zones, attempts, _ = found[0]
    costs = [1000 * used / tried for _, _, tried, used in found]
    print(f"{rungs} rungs, {zones} zones, {attempts} attempts a walk")
    print(f"own CPU of an attempt: median {statistics.median(costs):.1f} ms, worst walk {max(costs):.1f} ms")
    print(f"goal: {GOAL_MS:g} ms")
    return 0 if statistics.median(costs) <= GOAL_MS else 1


if __name__ == "__main__":
    sys.exit(main())
