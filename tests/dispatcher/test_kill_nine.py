"""Real processes killed with SIGKILL at random points of real dispatches: supervisor, client, host runner.

The cloud is the simulated one, its machines are process trees of this host, the client is google-cloud-compute.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.killing import Scene
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState, RunStatus

AT_ONCE = 5
KILLS = 4
ROUNDS = int(os.environ.get("WIDELANE_KILL_ROUNDS", "2"))
"""Each kill of the supervisor strikes `AT_ONCE` dispatches, each at another point: rounds x kills x dispatches."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.stop()


def intended_names(scene: Scene, statuses: list[RunStatus]) -> set[str]:
    events = [event for status in statuses for event in scene.client.events(status.run_id)]
    return {event.body["name"] for event in events if event.kind == "attempt_intended"}


def check_nothing_doubled(scene: Scene, statuses: list[RunStatus], *, rerun: bool = False) -> None:
    """One machine a dispatch, each unit once, nothing left."""
    for status in statuses:
        assert status.state is DispatchState.SUCCEEDED, status
        outcomes = Counter(row.outcome for row in status.phases[0].attempts)
        assert outcomes[Outcome.GRANTED] == 1, status
        assert status.phases[0].realized_width == 2
    inserts: dict[str, set[str]] = defaultdict(set)
    rows = intended_names(scene, statuses)
    for request in scene.requests():
        if request.get("method") == "insert":
            body = request["body"]
            inserts[body["name"]].add(request["params"]["requestId"])
            assert body["labels"]["widelane"] == "1"
            assert int(body["scheduling"]["maxRunDuration"]["seconds"]) >= 600
            assert body["scheduling"]["instanceTerminationAction"] == "DELETE"
            assert body["name"] in rows, "a create was sent that the journal doesn't have"
    assert len(inserts) >= len(statuses)
    assert all(len(ids) == 1 for ids in inserts.values()), "a create was repeated under another request id"
    assert scene.wait_until(lambda: scene.instances() == []), scene.instances()
    starts = Counter((salt, draw) for word, salt, draw in scene.witnessed() if word == "start")
    ends = Counter((salt, draw) for word, salt, draw in scene.witnessed() if word == "end")
    assert len(ends) == scene.units * len(statuses)
    assert set(ends.values()) == {1}, "a unit was run after it had succeeded"
    if not rerun:
        assert set(starts.values()) == {1}, "a unit was run twice"


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_supervisors_killed_at_random_points_neither_double_nor_lose_anything(scene: Scene, seed: int) -> None:
    rng = random.Random(seed)
    runs = [scene.submit(f"s{seed}-{number}") for number in range(AT_ONCE)]
    struck = 0
    for _ in range(KILLS):
        time.sleep(rng.uniform(0.6, 2.2))
        struck += scene.kill("widelane.dispatcher", rng)
        scene.client.wait(runs[0], 0)
    statuses = [scene.ended(run_id) for run_id in runs]
    assert struck >= 1
    check_nothing_doubled(scene, statuses)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_host_runners_killed_at_random_points_are_started_again_and_adopt_their_units(scene: Scene, seed: int) -> None:
    rng = random.Random(100 + seed)
    runs = [scene.submit(f"h{seed}-{number}") for number in range(AT_ONCE)]
    assert scene.wait_until(lambda: bool(scene.processes("runner.pyz")), 30)
    for _ in range(3 * KILLS):
        time.sleep(rng.uniform(0.0, 0.2))
        scene.kill("runner.pyz host", rng)
    statuses = [scene.ended(run_id) for run_id in runs]
    check_nothing_doubled(scene, statuses, rerun=True)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_clients_killed_at_random_points_leave_a_run_that_is_whole_or_none_and_a_repeat_adopts_it(
    scene: Scene, seed: int
) -> None:
    rng = random.Random(200 + seed)
    salts = [f"c{seed}-{number}" for number in range(AT_ONCE)]
    for salt in salts:
        client = scene.submit_by_command(salt)
        time.sleep(rng.uniform(0.2, 1.6))
        client.kill()
        client.wait()
    runs = [scene.submit(salt) for salt in salts]
    statuses = [scene.ended(run_id) for run_id in runs]
    check_nothing_doubled(scene, statuses)
    assert len(scene.client.runs()) == AT_ONCE


def test_a_simulated_cloud_that_is_killed_is_started_again_and_the_run_goes_on(scene: Scene) -> None:
    rng = random.Random(7)
    runs = [scene.submit(f"cloud-{number}") for number in range(2)]
    assert scene.wait_until(lambda: bool(scene.instances()), 30)
    assert scene.kill("widelane.simcloud", rng)
    check_nothing_doubled(scene, [scene.ended(run_id) for run_id in runs])


def test_a_second_supervisor_of_a_home_refuses_and_names_the_holder(scene: Scene) -> None:
    run_id = scene.submit("two")
    assert scene.wait_until((scene.home / "supervisor.lock").exists)
    pids = scene.processes("widelane.dispatcher")
    assert len(pids) == 1
    second: Any = subprocess.run(
        [sys.executable, "-m", "widelane.dispatcher", "--home", str(scene.home)],
        capture_output=True,
        check=False,
        text=True,
    )
    assert second.returncode == 1
    assert str(pids[0]) in second.stderr
    check_nothing_doubled(scene, [scene.ended(run_id)])
