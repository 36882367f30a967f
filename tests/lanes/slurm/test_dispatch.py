"""Whole runs on a cluster behind a login host: results that come home, a login that is lost, a last resort."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import guards
from tests.fakes.launches import launch, rung
from tests.fakes.runpod_server import A100, KEY, RunpodServer, runpod_server
from tests.fakes.slurm_cluster import Cluster
from tests.fakes.sshd import Sshd
from widelane import plan
from widelane.config import RunpodSettings, Settings, SlurmSettings
from widelane.dispatcher import Client
from widelane.dispatcher.assembly import make_bench
from widelane.errors import LaneAuthError
from widelane.lanes.registry import open_lane
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState, RunStatus
from widelane.models.verdict import Verdict
from widelane.router import judge
from widelane.transport.line import control_folder

Eventually = Callable[..., None]
pytestmark = pytest.mark.slow

PLAN = """\
widelane: 1
phases:
  - name: capture
    intent: capture-7b
    axes: {{draw: {width}}}
    gpu_hours: 8
    width: {width}
    min_width: 1
    command: python3 -c "import time, pathlib; time.sleep({seconds}); pathlib.Path('{{draw}}.txt').write_text('done')"
    outputs: ["{{draw}}.txt"]
"""


class Scene:
    """One home, a cluster behind ssh, and RunPod as the last resort."""

    def __init__(self, folder: Path, gate: Sshd, pods: RunpodServer) -> None:
        self.folder, self.gate, self.pods = folder, gate, pods
        self.section = SlurmSettings(host="box", workdir=str(folder / "far"), ssh_config=str(gate.config))
        given: dict[str, Any] = {"endpoint": pods.url, "key_env": "A_KEY"}
        runpod = RunpodSettings.model_validate(given)
        self.settings = Settings(home=folder / "home", slurm={"far": self.section}, runpod=runpod)

    def use(self, **section: Any) -> None:
        """Change the section of the cluster."""
        self.section = self.section.model_copy(update=section)
        self.settings = self.settings.model_copy(update={"slurm": {"far": self.section}})

    def near(self, **section: Any) -> None:
        """The same, with the login host on this machine: it is asked more often."""
        self.use(host="localhost", ssh_config="", **section)

    def lane(self) -> Any:
        """The lane, as another process would have it."""
        return open_lane("slurm.far", self.settings, dict(os.environ))

    @property
    def client(self) -> Client:
        return Client(self.settings)

    def submit(self, width: int = 4, seconds: float = 0.0) -> str:
        parsed = plan.parse(PLAN.format(width=width, seconds=seconds), "<argument>", str(self.folder))
        verdict = judge(parsed, make_bench(self.settings))
        assert verdict.verdict is Verdict.PASS, verdict
        answer = self.client.submit(parsed, verdict)
        assert answer.run_id is not None, answer
        return answer.run_id

    def ended(self, run_id: str) -> RunStatus:
        status = self.client.wait(run_id, 60, enough=lambda _: False)
        assert not status.state.live, status
        return status

    def close(self) -> None:
        for pid in guards.pids():
            words = guards.describe(pid)
            if "widelane.dispatcher" in words and str(self.folder) in words:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.gate.hang_up(*control_folder(self.settings.home).glob("*"))


@pytest.fixture
def scene(tmp_path: Path, login_host: Sshd, slurm_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setenv("SLURM_CONF", str(slurm_cluster.conf))
    monkeypatch.setenv("A_KEY", KEY)
    with runpod_server(tmp_path / "runpod") as pods:
        pods.stock = {A100: {1: 8, 2: 8, 4: 8, 8: 8}}
        made = Scene(tmp_path, login_host, pods)
        yield made
        made.close()
        login_host.write_config()


@pytest.mark.weekly  # a cluster by ssh is asked every ten seconds
def test_work_behind_a_login_host_survives_lost_lines_and_comes_home(
    scene: Scene, slurm_cluster: Cluster, eventually: Eventually
) -> None:
    run_id = scene.submit(seconds=1.0)
    eventually(lambda: slurm_cluster.ask("squeue", "-h", "-t", "R"), within=20.0)
    assert scene.gate.cut() > 0
    status = scene.ended(run_id)
    assert status.state is DispatchState.SUCCEEDED, status
    (phase,) = status.phases
    assert (phase.lane, phase.realized_width, phase.units.succeeded) == ("slurm.far", 4, 4)
    scene.client.pull(run_id, scene.folder / "pulled")
    assert sorted(path.name for path in (scene.folder / "pulled").glob("*.txt")) == [f"{n}.txt" for n in range(4)]
    assert slurm_cluster.ask("squeue", "-h") == ""
    assert not scene.pods.heard


def test_a_lost_login_is_a_login_to_be_renewed_and_no_paid_lane_is_asked(scene: Scene) -> None:
    scene.gate.write_config("stranger")
    with pytest.raises(LaneAuthError) as told:
        scene.submit()
    assert told.value.code == "login_needed"
    assert "ssh -F" in told.value.hint
    assert scene.client.runs() == ()
    assert not scene.pods.heard


def test_a_login_that_is_lost_later_is_never_taken_for_an_answer(
    scene: Scene, slurm_cluster: Cluster, eventually: Eventually
) -> None:
    lane = scene.lane()
    sent = launch(rung=rung("any", 2, lane="slurm.far", gpu="", zones=()), zone="slurm.far")
    lane.check("")
    scene.gate.hang_up(*control_folder(scene.settings.home).glob("*"))
    scene.gate.write_config("stranger")
    fresh = scene.lane()
    for ask in (lambda: fresh.create(sent), lambda: fresh.find(sent.name, "")):
        with pytest.raises(LaneAuthError):
            ask()
    assert slurm_cluster.ask("squeue", "-h", "-t", "all", "-n", sent.name) == ""


def test_a_walk_starts_at_what_the_partition_holds(scene: Scene) -> None:
    scene.near(partition="four")
    status = scene.ended(scene.submit(width=8))
    assert status.state is DispatchState.SUCCEEDED, status
    (phase,) = status.phases
    assert (phase.requested_width, phase.realized_width, phase.lane) == (8, 4, "slurm.far")
    assert [row.width for row in phase.attempts] == [4]


def test_a_partition_that_is_down_is_evidence_enough_for_the_paid_lane(scene: Scene) -> None:
    scene.near(partition="down")
    run_id = scene.submit()
    status = scene.ended(run_id)
    assert status.state is DispatchState.SUCCEEDED, status
    assert [(row.lane, row.width, row.outcome) for row in status.phases[0].attempts] == [
        ("slurm.far", 2, Outcome.CAPACITY),
        ("slurm.far", 1, Outcome.CAPACITY),
        ("runpod", 4, Outcome.GRANTED),
    ]
    selected = [event for event in scene.client.events(run_id) if event.kind == "backend_selected"]
    assert len(selected[0].body["evidence"]) == 2
    assert scene.pods.count("create") == 1
    intents = [event for event in scene.client.events(run_id) if event.kind == "attempt_intended"]
    created = [heard.body["name"] for heard in scene.pods.heard if heard.what == "create"]
    assert created == [intents[-1].body["name"]]
