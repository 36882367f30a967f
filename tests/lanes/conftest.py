"""A simulated cloud, a store with the runner in it, and launches that are fit to be sent."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import runpod_server, sshbox, sshd
from tests.fakes.launches import launch, rung
from tests.fakes.slurm_cluster import Cluster
from tests.fakes.slurm_cluster import running as slurm_in
from widelane.config import RunpodSettings, Settings, SlurmSettings
from widelane.lanes.protocol import Launch
from widelane.lanes.registry import open_lane
from widelane.models.verdict import Rung
from widelane.simcloud.client import SimEndpoint, ensure_running, stop
from widelane.store import Store, open_store, publish_runner, write_spec
from widelane.transport.line import control_folder

SCENARIO = """\
clock: {rate: 60}
boot_seconds: 2
stock:
  - {zone: us-central1-a, machine_type: a2-ultragpu-2g, model: "*", count: 50}
  - {zone: us-central1-a, machine_type: a2-ultragpu-4g, model: FLEX_START, count: 0, then: pending}
  - {zone: us-central1-c, machine_type: a2-ultragpu-4g, model: SPOT, count: 4}
quotas:
  us-central1: {PREEMPTIBLE_NVIDIA_H100_GPUS: 1}
global_quotas: {GPUS_ALL_REGIONS: 640}
secrets: {HF_TOKEN: hush-5bd1e995}
"""
LONG_WORK = (sys.executable, "-c", "import time; time.sleep(600)")
SHORT_WORK = (sys.executable, "-c", "open('out.txt', 'w').write('done')")


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimEndpoint]:
    """One simulated cloud for all tests of lanes; each test deletes what it made."""
    home = tmp_path_factory.mktemp("cloud")
    scenario = home / "scenario.yaml"
    scenario.write_text(SCENARIO)
    endpoint = ensure_running(scenario, home)
    yield endpoint
    assert stop(endpoint)


@dataclass
class Yard:
    """Where launches are made. `sent` remembers them, so that the fixture can clear up."""

    store: Store
    runner_sha256: str
    sent: list[Launch]

    def launch(self, where: Rung, zone: str, argv: tuple[str, ...] = LONG_WORK, **changes: Any) -> Launch:
        """A launch with one unit of that command, its spec in the store."""
        attempt = f"att-{uuid.uuid4().hex[:10]}"
        key = write_spec(self.store, "dis-0001", attempt, _spec(attempt, where.width, argv))
        made = launch(
            attempt_id=attempt,
            name=f"wl-{attempt}",
            request_id=str(uuid.uuid4()),
            rung=where,
            zone=zone,
            store_url=self.store.url,
            spec_key=key,
            runner_sha256=self.runner_sha256,
            fence_seconds=604_800,
            **changes,
        )
        self.sent.append(made)
        return made


def _spec(attempt: str, width: int, argv: tuple[str, ...]) -> dict[str, Any]:
    unit = {"index": 0, "digest": attempt, "argv": list(argv), "gpus": 1, "outputs": ["out.txt"], "env": {}}
    return {
        "spec": 1,
        "run_id": "run-0001",
        "dispatch_id": "dis-0001",
        "lease": attempt,
        "phase": "work",
        "requested_width": width,
        "expected_width": width,
        "cpu_slots": 1,
        "units": [unit],
    }


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    store = open_store((tmp_path / "store").as_uri())
    return Yard(store, publish_runner(store), [])


@dataclass
class Site:
    """One lane under test: `open` gives a new lane object each time, as another process would have it."""

    name: str
    settings: Settings
    zone: str
    rung: Rung
    yard: Yard

    def open(self) -> Any:
        return open_lane(self.name, self.settings, dict(os.environ))

    def told(self, sent: Launch, key: str) -> bool:
        """Whether our store has a key of this machine's, once the lane was asked about it as the walk does."""
        self.open().find(sent.name, sent.zone)
        return self.yard.store.exists(key)

    def launch(self, argv: tuple[str, ...] = LONG_WORK, **changes: Any) -> Launch:
        return self.yard.launch(changes.pop("rung", self.rung), changes.pop("zone", self.zone), argv, **changes)


@pytest.fixture(scope="session")
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshbox.SshBox]:
    """One host with four GPUs behind a real sshd for all tests of lanes; each test deletes what it made."""
    missing = sshd.missing()
    if missing:
        pytest.skip(missing)
    with sshbox.running(tmp_path_factory.mktemp("box")) as found:
        yield found


@pytest.fixture(scope="session")
def slurm_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One SLURM for all tests of lanes, with a configuration of its own; each test deletes what it submitted."""
    with slurm_in(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def login_host(slurm_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Sshd]:
    """A real sshd whose logins see that SLURM."""
    missing = sshd.missing()
    if missing:
        pytest.skip(missing)
    gate = sshd.Sshd(
        tmp_path_factory.mktemp("login"), {"SLURM_CONF": str(slurm_cluster.conf), "PATH": os.environ["PATH"]}
    )
    gate.start()
    yield gate
    gate.end()


@pytest.fixture
def sites(
    request: pytest.FixtureRequest,
    cloud: SimEndpoint,
    yard: Yard,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[str], Site]]:
    """`sites("gcp")`; at the end everything that was launched is deleted and seen to be gone."""
    home = Settings(home=tmp_path / "home")
    # Servers of one test: they must answer until what was launched there is deleted.
    servers = ExitStack()

    def ssh_box() -> Site:
        found: sshbox.SshBox = request.getfixturevalue("box")
        where = rung("any", 2, lane="ssh.box", gpu="", zones=())
        return Site("ssh.box", found.settings(home.home), "ssh.box", where, yard)

    def slurm() -> Site:
        cluster: Cluster = request.getfixturevalue("slurm_cluster")
        monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
        test = SlurmSettings(host="localhost", workdir=str(tmp_path / "work"))
        where = rung("any", 2, lane="slurm.test", gpu="", zones=())
        return Site("slurm.test", home.model_copy(update={"slurm": {"test": test}}), "slurm.test", where, yard)

    def far_slurm() -> Site:
        """The same cluster behind a login host: another file system as far as the lane knows, reached by ssh."""
        gate: sshd.Sshd = request.getfixturevalue("login_host")
        far = SlurmSettings(host="box", workdir=str(tmp_path / "far"), ssh_config=str(gate.config))
        servers.callback(lambda: gate.hang_up(*control_folder(home.home).glob("*")))
        where = rung("any", 2, lane="slurm.far", gpu="", zones=())
        return Site("slurm.far", home.model_copy(update={"slurm": {"far": far}}), "slurm.far", where, yard)

    def pods(transport: str) -> Site:
        monkeypatch.setenv("A_KEY", runpod_server.KEY)
        found = servers.enter_context(runpod_server.runpod_server(tmp_path / "runpod"))
        found.stock = {runpod_server.A100: {2: 8}}
        given = {"endpoint": found.url, "key_env": "A_KEY", "transport": transport}
        settings = home.model_copy(update={"runpod": RunpodSettings.model_validate(given)})
        place = runpod_server.A100
        return Site("runpod", settings, place, rung(place, 2, lane="runpod", gpu="", zones=(place,)), yard)

    known = {
        "gcp": lambda: Site(
            "gcp", home.simulated(cloud.url, cloud.project), "us-central1-a", rung("a2-ultragpu-2g", 2), yard
        ),
        "local": lambda: Site("local", home, "local", rung("local", 0, lane="local", zones=("local",)), yard),
        "ssh.box": ssh_box,
        "runpod": lambda: pods("rest2"),
        "runpod by sdk": lambda: pods("sdk"),
        "slurm.test": slurm,
        "slurm.far": far_slurm,
    }
    made: list[Site] = []

    def site(name: str) -> Site:
        made.append(known[name]())
        return made[-1]

    with servers:
        yield site
        for used in made:
            lane = used.open()
            for sent in yard.sent:
                if sent.rung.lane == used.name:
                    lane.delete(sent.name, sent.zone)
            if used.name == "ssh.box":
                request.getfixturevalue("box").disconnect()
