"""The gcp lane, the client library and a simulated cloud whose machines are processes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gate import Gate, gate_before
from tests.fakes.launches import rung
from tests.fakes.storage import storage_service
from tests.lanes.conftest import SHORT_WORK, Site
from widelane.lanes.protocol import Granted, Lane, Launch, MachineState, Pending, Progress
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.plan import ProvisioningModel
from widelane.simcloud.client import SimEndpoint, call
from widelane.store import open_store, publish_runner

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]
WAITING = rung("a2-ultragpu-4g", 4, ProvisioningModel.FLEX_START)


@pytest.fixture
def site(sites: Callable[[str], Site]) -> Site:
    return sites("gcp")


@pytest.fixture
def lane(site: Site) -> Lane:
    opened: Lane = site.open()
    return opened


@pytest.fixture
def outcome(lane: Lane, eventually: Eventually) -> Callable[[Launch], Progress]:
    """Create, follow until it is decided, and say how."""

    def wait(sent: Launch) -> Progress:
        seen: list[Progress] = [lane.create(sent)]

        def decided() -> bool:
            last = seen[-1]
            if isinstance(last, Pending):
                seen.append(lane.poll(sent, last.operation))
            return not isinstance(seen[-1], Pending)

        eventually(decided)
        return seen[-1]

    return wait


def queued(lane: Lane, sent: Launch, eventually: Eventually) -> str:
    """Create a flex-start request and return its operation once it waits."""
    first = lane.create(sent)
    assert isinstance(first, Pending)
    eventually(lambda: lane.poll(sent, first.operation) == Pending(first.operation, queued=True))
    return first.operation


def inserts(cloud: SimEndpoint, sent: Launch) -> list[dict[str, Any]]:
    heard: list[dict[str, Any]] = call(cloud.url, "GET", "/sim/requests")["requests"]
    return [entry for entry in heard if entry["method"] == "insert" and sent.request_id in json.dumps(entry)]


def test_a_stockout_names_the_zones_that_have_some(site: Site, outcome: Callable[[Launch], Progress]) -> None:
    spot = rung("a2-ultragpu-4g", 4, ProvisioningModel.SPOT)
    failure = outcome(site.launch(rung=spot))
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.scope, failure.zones_hint) == (Outcome.CAPACITY, Scope.ZONE, ("us-central1-c",))


def test_a_quota_refusal_names_its_metric(site: Site, outcome: Callable[[Launch], Progress]) -> None:
    wide = rung("a3-highgpu-8g", 8, ProvisioningModel.SPOT)
    failure = outcome(site.launch(rung=wide))
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.metric) == (Outcome.QUOTA, "PREEMPTIBLE_NVIDIA_H100_GPUS")


def test_a_machine_type_that_the_zone_lacks_costs_only_that_zone(
    site: Site, outcome: Callable[[Launch], Progress]
) -> None:
    failure = outcome(site.launch(zone="us-central1-f"))
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.scope) == (Outcome.CONFIG, Scope.ZONE)


def test_a_queued_request_expires_after_its_wait(
    site: Site, lane: Lane, cloud: SimEndpoint, eventually: Eventually
) -> None:
    sent = site.launch(rung=WAITING, wait_seconds=600)
    operation = queued(lane, sent, eventually)
    found = lane.find(sent.name, sent.zone)
    assert found is not None
    assert found.state is MachineState.QUEUED
    call(cloud.url, "POST", "/sim/advance", {"seconds": 601})
    seen: list[Progress] = []
    eventually(lambda: not isinstance(seen.append(lane.poll(sent, operation)) or seen[-1], Pending))
    failure = seen[-1]
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.scope) == (Outcome.QUEUE_EXPIRED, Scope.RUNG)
    assert lane.find(sent.name, sent.zone) is None


def test_a_queued_request_that_somebody_deletes_has_vanished(site: Site, lane: Lane, eventually: Eventually) -> None:
    sent = site.launch(rung=WAITING, wait_seconds=7200)
    operation = queued(lane, sent, eventually)
    site.open().delete(sent.name, sent.zone)
    seen: list[Progress] = []
    eventually(lambda: not isinstance(seen.append(lane.poll(sent, operation)) or seen[-1], Pending))
    failure = seen[-1]
    assert isinstance(failure, Failure)
    assert failure.outcome is Outcome.QUEUE_VANISHED


def test_a_queued_request_runs_when_stock_arrives(
    site: Site, lane: Lane, cloud: SimEndpoint, eventually: Eventually
) -> None:
    sent = site.launch(rung=WAITING, wait_seconds=7200)
    operation = queued(lane, sent, eventually)
    stock = {"zone": sent.zone, "machine_type": "a2-ultragpu-4g", "model": "FLEX_START", "count": 1}
    call(cloud.url, "POST", "/sim/stock", stock)
    eventually(lambda: isinstance(lane.poll(sent, operation), Granted))


@pytest.mark.parametrize("fault", ["drop_after_commit", "drop_before_commit", "http_503"])
def test_a_create_whose_answer_was_lost_is_repeated_without_doubling(
    site: Site, lane: Lane, cloud: SimEndpoint, outcome: Callable[[Launch], Progress], fault: str
) -> None:
    sent = site.launch()
    call(cloud.url, "POST", "/sim/faults", {"on": "insert", "do": fault})
    lost = lane.create(sent)
    assert isinstance(lost, Failure)
    assert (lost.outcome, lost.outcome_known) == (Outcome.TRANSIENT, False)
    assert isinstance(outcome(sent), Granted)
    assert [found.name for found in lane.machines()].count(sent.name) == 1


def test_a_create_with_another_request_id_adopts_the_machine_of_its_attempt(
    site: Site, lane: Lane, outcome: Callable[[Launch], Progress]
) -> None:
    sent = site.launch()
    first = outcome(sent)
    again = lane.create(dataclasses.replace(sent, request_id="00000000-0000-4000-8000-00000000000f"))
    assert isinstance(first, Granted)
    assert isinstance(again, Granted)
    assert again.machine.id == first.machine.id


def test_a_preempted_machine_is_told_from_one_that_we_deleted(
    site: Site, lane: Lane, cloud: SimEndpoint, outcome: Callable[[Launch], Progress], eventually: Eventually
) -> None:
    spot = rung("a2-ultragpu-2g", 2, ProvisioningModel.SPOT)
    taken, ended = site.launch(rung=spot), site.launch(rung=spot)
    for sent in (taken, ended):
        assert isinstance(outcome(sent), Granted)
    call(cloud.url, "POST", "/sim/preempt", {"instance": taken.name})
    call(cloud.url, "POST", "/sim/advance", {"seconds": 60})
    lane.delete(ended.name, ended.zone)
    eventually(lambda: lane.find(taken.name, taken.zone) is None and lane.find(ended.name, ended.zone) is None)
    assert lane.preempted(taken.name, taken.zone) is True
    assert lane.preempted(ended.name, ended.zone) is False


def test_the_run_limit_ends_a_machine_that_nobody_watches(
    site: Site, lane: Lane, cloud: SimEndpoint, outcome: Callable[[Launch], Progress], eventually: Eventually
) -> None:
    sent = dataclasses.replace(site.launch(), fence_seconds=1200)
    assert isinstance(outcome(sent), Granted)
    call(cloud.url, "POST", "/sim/advance", {"seconds": 1300})
    eventually(lambda: lane.find(sent.name, sent.zone) is None)


def test_a_machine_deletes_itself_after_its_work(
    site: Site, lane: Lane, outcome: Callable[[Launch], Progress], eventually: Eventually
) -> None:
    sent = site.launch(SHORT_WORK)
    outcome(sent)
    eventually(lambda: lane.find(sent.name, sent.zone) is None, within=30.0)
    assert json.loads(site.yard.store.get(f"leases/{sent.attempt_id}/finished.json"))["state"] == "succeeded"


def corrupt(site: Site, sent: Launch) -> Launch:
    site.yard.store.put(f"runners/{'0' * 64}.pyz", b"not it")
    return dataclasses.replace(sent, runner_sha256="0" * 64)


def absent(site: Site, sent: Launch) -> Launch:
    return dataclasses.replace(sent, runner_sha256="1" * 64)


def no_spec(site: Site, sent: Launch) -> Launch:
    return dataclasses.replace(sent, spec_key="specs/none.json")


@pytest.mark.parametrize("break_it", [corrupt, absent, no_spec], ids=lambda breaker: breaker.__name__)
def test_a_machine_that_cannot_work_says_why_and_deletes_itself(
    site: Site,
    lane: Lane,
    outcome: Callable[[Launch], Progress],
    eventually: Eventually,
    break_it: Callable[[Site, Launch], Launch],
) -> None:
    sent = break_it(site, site.launch())
    outcome(sent)
    key = f"leases/{sent.attempt_id}/finished.json"
    eventually(lambda: site.yard.store.exists(key), within=30.0)
    told = json.loads(site.yard.store.get(key))
    assert told["state"] == "env_broken"
    assert told["reason"]
    eventually(lambda: lane.find(sent.name, sent.zone) is None, within=30.0)


def test_quotas_come_from_the_service(lane: Lane) -> None:
    taken = lane.quotas(("us-central1", "europe-west4"))
    told = {metric.metric: metric.limit for metric in taken.regions[0].metrics or ()}
    assert told == {"PREEMPTIBLE_NVIDIA_H100_GPUS": 1.0}
    assert taken.regions[1].metrics is None
    assert [metric.metric for metric in taken.global_metrics or ()] == ["GPUS_ALL_REGIONS"]
    assert taken.project == "sim-project"


def test_deadlines_follow_the_clock_of_the_cloud(lane: Lane, cloud: SimEndpoint) -> None:
    assert lane.clock.rate == 60.0
    assert abs(lane.clock.elapsed() - call(cloud.url, "GET", "/sim/clock")["elapsed"]) < 300.0


SECRET = "hush-5bd1e995"
LOOKS = """
import hashlib, os, pathlib
value = os.environ["HF_TOKEN"].encode()
files = [path for path in pathlib.Path(os.environ["HOME"]).rglob("*") if path.is_file() and not path.is_symlink()]
found = [str(path) for path in files if value in path.read_bytes()]
open("out.txt", "w").write(f"{hashlib.sha256(value).hexdigest()} {len(files) > 5} {found}")
"""


def test_a_secret_reaches_the_work_and_nothing_that_is_written_down(
    site: Site, lane: Lane, cloud: SimEndpoint, outcome: Callable[[Launch], Progress], eventually: Eventually
) -> None:
    sent = site.launch((sys.executable, "-c", LOOKS), secrets=("HF_TOKEN",))
    outcome(sent)
    store, key = site.yard.store, f"leases/{sent.attempt_id}/finished.json"
    eventually(lambda: store.exists(key), within=30.0)
    record = json.loads(store.get(f"records/{sent.attempt_id}.json"))
    right = hashlib.sha256(SECRET.encode()).hexdigest()
    assert store.get(f"blobs/{record['outputs'][0]['sha256']}").decode() == f"{right} True []"
    eventually(lambda: lane.find(sent.name, sent.zone) is None, within=30.0)
    assert store.folder is not None
    written = [path for path in store.folder.rglob("*") if path.is_file()]
    # What the cloud keeps, serial output included, but for the scenario itself; the work has looked on its own disk.
    written += [path for path in cloud.folder.rglob("*") if path.is_file() and path.name != "scenario.yaml"]
    assert len(written) > 5
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []
    heard = json.dumps(call(cloud.url, "GET", "/sim/requests"))
    assert "secrets/HF_TOKEN/versions/latest:access" in heard
    assert SECRET not in heard


def test_a_machine_whose_secret_is_not_there_names_it_and_deletes_itself(
    site: Site, lane: Lane, outcome: Callable[[Launch], Progress], eventually: Eventually
) -> None:
    sent = site.launch(secrets=("NO_SUCH",))
    outcome(sent)
    key = f"leases/{sent.attempt_id}/finished.json"
    eventually(lambda: site.yard.store.exists(key), within=30.0)
    told = json.loads(site.yard.store.get(key))
    assert told["state"] == "env_broken"
    assert "NO_SUCH" in told["reason"]
    assert "404" in told["reason"]
    eventually(lambda: lane.find(sent.name, sent.zone) is None, within=30.0)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Gate]:
    """A bucket `things`, whose every request is seen."""
    with storage_service("things") as url, gate_before(url) as gate:
        yield gate


def test_a_machine_works_out_of_a_bucket_with_its_own_token(
    site: Site, lane: Lane, bucket: Gate, outcome: Callable[[Launch], Progress], eventually: Eventually
) -> None:
    site.yard.store = open_store(f"gs://things/runs?endpoint={bucket.url}")
    publish_runner(site.yard.store)
    ours = len(bucket.seen)
    sent = site.launch(SHORT_WORK)
    outcome(sent)
    eventually(lambda: lane.find(sent.name, sent.zone) is None, within=30.0)
    store = site.yard.store
    assert json.loads(store.get(f"leases/{sent.attempt_id}/finished.json"))["state"] == "succeeded"
    record = json.loads(store.get(f"records/{sent.attempt_id}.json"))
    assert store.get(f"blobs/{record['outputs'][0]['sha256']}") == b"done"
    theirs = [seen for seen in bucket.seen[ours:] if "urllib" in seen.agent]
    assert len(theirs) > 5
    assert {seen.token.rpartition("-")[0][:8] for seen in theirs} == {"ya29.sim"}
    conditional = [seen for seen in theirs if "ifGenerationMatch=0" in seen.path]
    assert len(conditional) >= 2
