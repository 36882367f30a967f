"""A cluster and a run whose store is a bucket: jobs have a store of their own, and what they wrote comes home."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.gate import Gate, gate_before
from tests.fakes.launches import rung
from tests.fakes.slurm_cluster import Cluster
from tests.fakes.storage import storage_service
from tests.lanes.conftest import SHORT_WORK, Yard
from widelane.config import SlurmSettings
from widelane.lanes.clock import SystemClock
from widelane.lanes.slurm.lane import SlurmLane
from widelane.store import open_store, publish_runner
from widelane.transport import HereLine, Host

pytestmark = pytest.mark.slow


@pytest.fixture
def bucket() -> Iterator[Gate]:
    with storage_service("things") as url, gate_before(url) as gate:
        yield gate


def test_nodes_need_no_credentials_for_the_bucket(
    slurm_cluster: Cluster,
    yard: Yard,
    bucket: Gate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., None],
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(slurm_cluster.conf))
    yard.store = open_store(f"gs://things/runs?endpoint={bucket.url}")
    publish_runner(yard.store)
    settings = SlurmSettings(host="login", workdir=str(tmp_path / "work"))
    lane = SlurmLane("slurm.far", settings, Host("slurm.far", HereLine()), SystemClock(), tmp_path / "home", near=False)
    sent = yard.launch(rung("any", 2, lane="slurm.far", gpu="", zones=()), "slurm.far", SHORT_WORK)
    lane.create(sent)
    key = f"leases/{sent.attempt_id}/finished.json"
    eventually(lambda: (lane.find(sent.name, sent.zone), yard.store.exists(key))[1], within=60.0)
    assert json.loads(yard.store.get(key))["state"] == "succeeded"
    record = json.loads(yard.store.get(f"records/{sent.attempt_id}.json"))
    assert yard.store.get(f"blobs/{record['outputs'][0]['sha256']}") == b"done"
    assert [seen.path for seen in bucket.seen if "urllib" in seen.agent] == []
    lane.delete(sent.name, sent.zone)
    eventually(lambda: lane.find(sent.name, sent.zone) is None, within=30.0)
