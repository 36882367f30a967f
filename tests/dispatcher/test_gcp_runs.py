"""Whole runs on the simulated cloud, as on Google Cloud: spot taken back, queues that end, buckets, secrets."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.fakes.gate import Gate, gate_before
from tests.fakes.killing import Scene
from tests.fakes.storage import storage_service
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState, RunStatus
from widelane.simcloud.client import call
from widelane.store import open_store

pytestmark = pytest.mark.slow

SPOT = """\
clock: {rate: 60}
boot_seconds: 3
preempt_grace_seconds: 3
stock:
  - {zone: us-central1-a, machine_type: a2-ultragpu-2g, model: SPOT, count: 8}
secrets: {HF_TOKEN: hush-7c1fa2d4}
"""
QUEUES = """\
clock: {rate: 60}
boot_seconds: 3
stock:
  - {zone: us-central1-c, machine_type: a2-ultragpu-2g, model: FLEX_START, count: 0, then: pending}
  - {zone: us-central1-a, machine_type: a2-ultragpu-2g, model: FLEX_START, count: 0, then: pending}
  - {zone: us-central1-a, machine_type: a2-ultragpu-2g, model: STANDARD, count: 8}
"""
WAITS = """\
import os, pathlib, sys, time
draw, witness, go = sys.argv[1], pathlib.Path(os.environ["WITNESS"]), pathlib.Path(os.environ["GO"])
def say(word):
    with witness.open("a") as file:
        file.write(f"{word} {draw}\\n")
say("start")
while int(draw) >= 2 and not go.exists():
    time.sleep(0.02)
os.makedirs("out", exist_ok=True)
pathlib.Path(f"out/{draw}.json").write_text(os.environ.get("HF_TOKEN", "none")[:4])
say("end")
"""
PLAN = """\
widelane: 1
phases:
  - name: capture
    intent: capture-7b
    axes: {{draw: 6}}
    gpu_hours: 8
    width: 2
    narrow_because: {{kind: licence_seats, seats: 2}}
    source: {{path: ../job}}
    env: {{WITNESS: "{witness}", GO: "{go}"}}
    command: python3 waits.py {{draw}}
    outputs: ["out/{{draw}}.json"]
{more}
"""


class Runs(Scene):
    """One home, one cloud of that scenario, one plan."""

    def __init__(self, folder: Path, scenario: str, more: str = "") -> None:
        super().__init__(folder, scenario=scenario)
        self.more = more
        self.go = folder / "go"
        (folder / "job" / "waits.py").write_text(WAITS)

    def plan_text(self, salt: str) -> str:
        return PLAN.format(witness=self.folder / "witness.txt", go=self.go, more=self.more)

    def said(self) -> list[str]:
        path = self.folder / "witness.txt"
        return path.read_text().splitlines() if path.exists() else []

    def vms(self, status: str = "RUNNING") -> list[dict[str, Any]]:
        return [vm for vm in self.instances() if vm["status"] == status]

    def outcomes(self, status: RunStatus) -> list[tuple[str, str]]:
        rows = status.phases[0].attempts
        return [(row.provisioning_model.value, row.outcome.value if row.outcome else "") for row in rows]


Begin = Callable[..., Runs]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    made: list[Runs] = []

    def begin(scenario: str, more: str = "") -> Runs:
        made.append(Runs(tmp_path / "scene", scenario, more))
        return made[-1]

    yield begin
    for scene in made:
        scene.kill("widelane.dispatcher", Random(0))
        scene.stop()


def test_a_spot_machine_that_is_taken_back_hands_its_units_to_the_next_one(begin: Begin) -> None:
    scene = begin(SPOT, "    spot_tolerant: true")
    run_id = scene.submit("x")
    assert scene.wait_until(lambda: {"end 0", "end 1", "start 2", "start 3"} <= set(scene.said()))
    (first,) = scene.vms()
    assert scene.wait_until(lambda: scene.client.status(run_id).phases[0].units.succeeded == 2)
    call(scene.sim.url, "POST", "/sim/preempt", {"instance": first["name"]})
    assert scene.wait_until(lambda: any(vm["id"] != first["id"] for vm in scene.vms()))
    scene.go.touch()
    status = scene.ended(run_id)
    assert status.state is DispatchState.SUCCEEDED
    assert scene.outcomes(status) == [("SPOT", "preempted"), ("SPOT", "granted")]
    said = scene.said()
    assert [said.count(f"end {draw}") for draw in range(6)] == [1] * 6
    assert [said.count(f"start {draw}") for draw in range(6)] == [1, 1, 2, 2, 1, 1]
    selected = [event.body for event in scene.client.events(run_id) if event.kind == "backend_selected"]
    assert [row["provisioning_model"] for row in selected] == ["SPOT", "SPOT"]
    assert selected[0]["machine_id"] == first["id"] != selected[1]["machine_id"]
    assert scene.wait_until(lambda: scene.instances() == [])


def queued(scene: Runs) -> bool:
    return bool(scene.vms("PENDING"))


def test_a_queue_whose_wait_is_over_leads_to_the_next_rung(begin: Begin) -> None:
    scene = begin(QUEUES)
    scene.go.touch()
    run_id = scene.submit("x")
    assert scene.wait_until(lambda: queued(scene))
    call(scene.sim.url, "POST", "/sim/advance", {"seconds": 700})
    status = scene.ended(run_id)
    assert status.state is DispatchState.SUCCEEDED
    assert scene.outcomes(status) == [("FLEX_START", "queue_expired"), ("STANDARD", "granted")]
    waits = [
        entry["body"]["params"]
        for entry in scene.requests()
        if entry["method"] == "insert" and "params" in entry["body"]
    ]
    assert waits == [{"requestValidForDuration": {"seconds": "600"}}]


def test_a_queue_that_somebody_ends_leads_to_the_next_rung(begin: Begin) -> None:
    scene = begin(QUEUES)
    scene.go.touch()
    run_id = scene.submit("x")
    assert scene.wait_until(lambda: queued(scene))
    (waiting,) = scene.vms("PENDING")
    path = f"/compute/v1/projects/sim-project/zones/{waiting['zone']}/instances/{waiting['name']}"
    call(scene.sim.url, "DELETE", path)
    status = scene.ended(run_id)
    assert status.state is DispatchState.SUCCEEDED
    assert scene.outcomes(status) == [("FLEX_START", "queue_vanished"), ("STANDARD", "granted")]


def test_a_cancel_in_the_queue_withdraws_the_request(begin: Begin) -> None:
    scene = begin(QUEUES)
    run_id = scene.submit("x")
    assert scene.wait_until(lambda: scene.client.status(run_id).state is DispatchState.WAITING)
    scene.client.cancel(run_id)
    status = scene.ended(run_id)
    assert status.state is DispatchState.CANCELLED
    assert scene.wait_until(lambda: scene.instances() == [])
    assert [row.outcome for row in status.phases[0].attempts] == [Outcome.CANCELLED]


def test_machines_that_die_before_work_twice_in_a_row_close_their_kind(begin: Begin) -> None:
    both = SPOT.replace("model: SPOT, count: 8}", "model: SPOT, count: 8}\n" + QUEUES.splitlines()[-1])
    scene = begin(both, "    spot_tolerant: true")
    scene.go.touch()
    dead: set[str] = set()

    def killed(count: int) -> bool:
        for vm in scene.vms():
            if vm["model"] == "SPOT" and vm["pid"] is not None and vm["id"] not in dead:
                os.kill(vm["pid"], signal.SIGKILL)
                dead.add(vm["id"])
        return len(dead) >= count

    run_id = scene.submit("x")
    assert scene.wait_until(lambda: killed(2))
    status = scene.ended(run_id)
    assert status.state is DispatchState.SUCCEEDED
    spot = [row.code if row.outcome is Outcome.SKIPPED else row.outcome for row in status.phases[0].attempts[:3]]
    assert spot == [Outcome.UNKNOWN, Outcome.UNKNOWN, "boot_loop"]
    assert scene.outcomes(status)[-1] == ("STANDARD", "granted")


@pytest.fixture
def bucket() -> Iterator[Gate]:
    with storage_service("things") as url, gate_before(url) as gate:
        yield gate


def test_a_run_out_of_a_bucket_with_a_secret_leaves_the_secret_nowhere(begin: Begin, bucket: Gate) -> None:
    url = f"gs://things/runs?endpoint={bucket.url}"
    scene = begin(SPOT, f'    spot_tolerant: true\n    secrets: [HF_TOKEN]\n    store: "{url}"')
    scene.go.touch()
    run_id = scene.submit("x")
    status = scene.ended(run_id)
    assert status.state is DispatchState.SUCCEEDED, status
    files = scene.client.pull(run_id, scene.folder / "back")
    assert sorted(path.name for path in files) == [f"{draw}.json" for draw in range(6)]
    assert {path.read_text() for path in files} == {"hush"}
    assert "hush" not in scene.client.log(run_id)
    store = open_store(url)
    written = [store.get(key) for key in store.list("")]
    kept = [path for path in scene.home.rglob("*") if path.is_file() and path.name != "scenario.yaml"]
    written += [path.read_bytes() for path in kept]
    assert len(written) > 20
    assert not any(b"hush-7c1fa2d4" in data for data in written)
    assert not any("hush-7c1fa2d4" in event.model_dump_json() for event in scene.client.events(run_id))
