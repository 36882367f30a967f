"""The checks of Google Cloud, against a service that says what the test tells it to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.fakes.compute_wire import Said, Wire, compute_wire
from widelane.config import GcpSettings, Settings
from widelane.lanes.gcp.defaults import GPU_IMAGE
from widelane.models.checkup import CheckStatus, SetupCheck
from widelane.simcloud.client import SimEndpoint

Examined = Callable[..., dict[str, SetupCheck]]
REGION = "us-central1"


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A project in which all is well."""
    with compute_wire() as made:
        quotas = [{"metric": "GPUS_ALL_REGIONS", "limit": 64.0, "usage": 0.0}]
        made.say("GET", "", Said(body={"name": "test-project", "quotas": quotas}))
        pool = {"metric": "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS", "limit": 16.0, "usage": 0.0}
        made.say("GET", f"/regions/{REGION}", Said(body={"name": REGION, "quotas": [pool]}))
        made.say("GET", "/global/networks/default", Said(body={"name": "default"}))
        made.answers["GET", f"/compute/v1/{GPU_IMAGE}"] = [Said(body={"name": "common-cu129"})]
        yield made


def settings(wire: Wire, tmp_path: Any, **gcp: Any) -> Settings:
    section = GcpSettings(project="test-project", endpoint=wire.url, regions=(REGION,), **gcp)
    return Settings(home=tmp_path / "home", gcp=section)


def test_a_project_in_which_all_is_well_passes_by_reads_alone(wire: Wire, tmp_path: Any, examined: Examined) -> None:
    found = examined("gcp", settings(wire, tmp_path))
    assert {name: check.status for name, check in found.items()} == dict.fromkeys(found, CheckStatus.OK)
    assert {"credentials", "project", "quotas", f"quotas of {REGION}", f"network of {REGION}", "image"} <= set(found)
    assert {entry.method for entry in wire.heard} == {"GET"}


@pytest.mark.parametrize(
    ("path", "answer", "told"),
    [
        ("", Said(403, {"error": {"code": 403, "message": "denied"}}), ("project", CheckStatus.FAIL, "gcloud")),
        ("", Said(503, "<html>busy</html>"), ("reach", CheckStatus.FAIL, "")),
        ("", Said(drop=True), ("reach", CheckStatus.FAIL, "")),
        (
            "",
            Said(body={"quotas": [{"metric": "GPUS_ALL_REGIONS", "limit": 0.0}]}),
            ("quotas", CheckStatus.WARN, "iam-admin/quotas"),
        ),
        (f"/regions/{REGION}", Said(body={"quotas": []}), (f"quotas of {REGION}", CheckStatus.WARN, "again")),
        (
            f"/regions/{REGION}",
            Said(body={"quotas": [{"metric": "NVIDIA_L4_GPUS", "limit": 0.0}]}),
            (f"quotas of {REGION}", CheckStatus.WARN, "ask for GPUs"),
        ),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    path: str, answer: Said, told: tuple[str, CheckStatus, str], wire: Wire, tmp_path: Any, examined: Examined
) -> None:
    wire.say("GET", path, answer)
    name, status, word = told
    check = examined("gcp", settings(wire, tmp_path))[name]
    assert check.status is status
    assert check.fix
    assert word in check.fix


def test_a_network_and_an_image_that_are_not_there_are_named(wire: Wire, tmp_path: Any, examined: Examined) -> None:
    found = examined("gcp", settings(wire, tmp_path, network="lost", image="projects/x/global/images/gone"))
    network, image = found[f"network of {REGION}"], found["image"]
    assert (network.status, image.status) == (CheckStatus.FAIL, CheckStatus.FAIL)
    assert "lost" in network.message
    assert "gone" in image.message


def test_an_image_that_is_deprecated_is_warned_of(wire: Wire, tmp_path: Any, examined: Examined) -> None:
    wire.answers["GET", f"/compute/v1/{GPU_IMAGE}"] = [Said(body={"deprecated": {"state": "DEPRECATED"}})]
    assert examined("gcp", settings(wire, tmp_path))["image"].status is CheckStatus.WARN


def test_machines_without_any_way_out_are_warned_of(wire: Wire, tmp_path: Any, examined: Examined) -> None:
    wire.say("GET", f"/regions/{REGION}/subnetworks/inner", Said(body={"privateIpGoogleAccess": False}))
    given = settings(wire, tmp_path, subnetwork="inner", external_address=False)
    check = examined("gcp", given)[f"network of {REGION}"]
    assert check.status is CheckStatus.WARN
    assert "private-ip-google-access" in check.fix
    wire.say("GET", f"/regions/{REGION}/subnetworks/inner", Said(body={"privateIpGoogleAccess": True}))
    assert examined("gcp", given)[f"network of {REGION}"].status is CheckStatus.OK


def test_without_credentials_the_login_is_named_and_nothing_is_asked(tmp_path: Any, examined: Examined) -> None:
    given = Settings(home=tmp_path / "home", gcp=GcpSettings(project="p", regions=(REGION,)))
    found = examined("gcp", given)
    assert found["credentials"].status is CheckStatus.FAIL
    assert "gcloud auth application-default login" in found["credentials"].fix
    assert found["store"].status is CheckStatus.FAIL
    assert "bucket" in found["store"].fix
    assert "project" not in found


@pytest.mark.slow
def test_a_simulated_cloud_passes(cloud: SimEndpoint, tmp_path: Any, examined: Examined) -> None:
    given = Settings(home=tmp_path / "home").simulated(cloud.url, cloud.project)
    found = examined("gcp", given)
    assert CheckStatus.FAIL not in {check.status for check in found.values()}
    assert found["quotas"].message == "GPUS_ALL_REGIONS is 640"
