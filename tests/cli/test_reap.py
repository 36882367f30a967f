"""`widelane reap` on a simulated cloud: a list by default, deletion with --yes, other people's machines left alone."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.launches import launch, rung
from widelane.config import Settings
from widelane.lanes.protocol import Pending
from widelane.lanes.registry import open_lane
from widelane.models.plan import ProvisioningModel
from widelane.simcloud.client import SimEndpoint, ensure_running, stop

pytestmark = pytest.mark.slow

Widelane = Callable[..., subprocess.CompletedProcess[str]]
SCENARIO = """\
clock: {rate: 60}
stock:
  - {zone: us-central1-a, machine_type: a2-ultragpu-2g, model: FLEX_START, count: 0, then: pending}
"""


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[SimEndpoint]:
    scenario = tmp_path / "sim.yaml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    endpoint = ensure_running(scenario, tmp_path / "cloud")
    yield endpoint
    assert stop(endpoint)


def test_nothing_found_is_done_and_a_machine_of_another_home_is_shown_and_stays(
    cloud: SimEndpoint, widelane: Widelane, tmp_path: Path
) -> None:
    none = widelane("reap", "--sim", cloud.url)
    assert (none.returncode, none.stdout) == (0, "0 machines, none to delete\n")
    lane = open_lane("gcp", Settings(home=tmp_path / "other").simulated(cloud.url, cloud.project))
    queued = rung("a2-ultragpu-2g", 2, ProvisioningModel.FLEX_START)
    sent = launch(rung=queued, wait_seconds=7200, request_id=str(uuid.uuid4()))
    assert isinstance(lane.create(sent), Pending)
    told = widelane("reap", "--yes", "--json", "--sim", cloud.url)
    assert told.returncode == 0, told.stderr
    (row,) = json.loads(told.stdout)["rows"]
    assert (row["name"], row["standing"], row["fate"]) == (sent.name, "foreign", "kept")
    shown = widelane("reap", "gcp", "--sim", cloud.url).stdout
    assert sent.name in shown
    assert "left alone" in " ".join(shown.split())
    assert lane.find(sent.name, sent.zone) is not None
    lane.delete(sent.name, sent.zone)


def test_a_lane_that_does_not_answer_is_an_exit_of_its_own_and_a_wrong_one_a_usage_error(
    cloud: SimEndpoint, widelane: Widelane
) -> None:
    wrong = widelane("reap", "slurm", "--sim", cloud.url)
    assert wrong.returncode == 2
    assert "gcp" in wrong.stderr
    nothing = widelane("reap")
    assert nothing.returncode == 2
    assert "widelane init" in nothing.stderr
    (Path(str(cloud.folder)).parent / "widelane.toml").write_text('[lanes.gcp]\nproject = "p"\n')
    silent = widelane("reap", "--json", cwd=Path(str(cloud.folder)).parent)
    assert silent.returncode == 3, silent.stderr
    (lane,) = json.loads(silent.stdout)["unasked"]
    assert lane["lane"] == "gcp"
    assert "gcloud auth" in lane["hint"]
