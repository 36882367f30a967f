"""What every create carries, and the golden bodies of the narrow ladder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.cloud import compute_v1
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.launches import launch, rung
from widelane.config import GcpSettings
from widelane.lanes.gcp.bodies import insert_body, label_value, request_id
from widelane.lanes.gcp.defaults import disk_type, image
from widelane.lanes.gcp.startup import Startup, startup
from widelane.lanes.protocol import Launch
from widelane.models.plan import ProvisioningModel

PAPERS = Startup("#!start-up script", "# bootstrap")
SITE = GcpSettings(project="test-project")
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "gcp"
MODELS = {
    "flex": ProvisioningModel.FLEX_START,
    "od": ProvisioningModel.STANDARD,
    "spot": ProvisioningModel.SPOT,
}
NARROW = [
    "spot-a2-ultragpu-1g",
    "spot-a2-highgpu-1g",
    "flex-a2-ultragpu-1g",
    "od-a2-ultragpu-1g",
    "od-a2-highgpu-1g",
]


def golden_launch(name: str) -> Launch:
    model, _, machine_type = name.partition("-")
    width = int(machine_type.rpartition("-")[2].removesuffix("g"))
    return launch(
        rung=rung(machine_type, width, MODELS[model]),
        wait_seconds=600 if model == "flex" else 0,
        fence_seconds=43_200,
    )


@pytest.mark.parametrize("name", [*NARROW, "flex-a3-highgpu-8g"])
def test_a_create_body_is_the_golden_one_byte_for_byte(name: str) -> None:
    body = insert_body(golden_launch(name), SITE, PAPERS)
    assert json.dumps(body, indent=2) + "\n" == (GOLDEN / f"{name}.json").read_text()


@pytest.mark.parametrize("name", NARROW)
def test_the_client_library_sends_every_field_of_a_body(name: str) -> None:
    body = insert_body(golden_launch(name), SITE, PAPERS)
    parsed = compute_v1.Instance.from_json(json.dumps(body))
    sent = compute_v1.Instance.to_dict(
        parsed,
        use_integers_for_enums=False,
        preserving_proto_field_name=False,
        always_print_fields_with_no_presence=False,
    )
    assert sent == body


rungs = st.builds(
    rung,
    st.sampled_from(["a2-ultragpu-8g", "a3-ultragpu-8g", "g2-standard-4", "e2-standard-2"]),
    st.sampled_from([0, 1, 2, 4, 8]),
    st.sampled_from(list(ProvisioningModel)),
)
sites = st.builds(
    GcpSettings,
    project=st.just("test-project"),
    network=st.sampled_from(["default", "projects/host/global/networks/shared"]),
    subnetwork=st.sampled_from(["", "sub"]),
    external_address=st.booleans(),
    image=st.sampled_from(["", "projects/p/global/images/mine"]),
    disk_type=st.sampled_from(["", "pd-ssd"]),
    disk_gib=st.integers(0, 4000),
    endpoint=st.sampled_from([None, "http://127.0.0.1:9"]),
)


changes = st.fixed_dictionaries(
    {
        "rung": rungs,
        "fence_seconds": st.integers(-5, 2_000_000),
        "wait_seconds": st.integers(-5, 20_000),
        "disk_gib": st.none() | st.integers(0, 4000),
        "labels": st.dictionaries(st.sampled_from(["widelane", "widelane-attempt", "team"]), st.text(max_size=80)),
        "attempt_id": st.text(min_size=1, max_size=80),
    }
)


@given(change=changes, site=sites)
def test_no_create_is_without_our_labels_a_fence_and_a_request_id(change: dict[str, Any], site: GcpSettings) -> None:
    sent = launch(**change)
    body = insert_body(sent, site, PAPERS)
    assert body["labels"]["widelane"] == "1"
    assert body["labels"]["widelane-attempt"] == label_value(sent.attempt_id)
    assert {"widelane-run", "widelane-dispatch", "widelane-key"} <= body["labels"].keys()
    assert all(len(value) <= 63 and value == label_value(value) for value in body["labels"].values())
    scheduling = body["scheduling"]
    assert 600 <= int(scheduling["maxRunDuration"]["seconds"]) <= 604_800
    assert (scheduling["instanceTerminationAction"], scheduling["automaticRestart"]) == ("DELETE", False)
    assert body["disks"][0]["autoDelete"] is True
    assert int(body["disks"][0]["initializeParams"]["diskSizeGb"]) >= 100
    flex = sent.rung.provisioning_model is ProvisioningModel.FLEX_START
    assert ("params" in body) is flex
    if flex:
        seconds = int(body["params"]["requestValidForDuration"]["seconds"])
        assert seconds == 0 or 90 <= seconds <= 7200
    assert request_id(sent)


@pytest.mark.parametrize("bad", ["", "again", "00000000-0000-0000-0000-000000000000"])
def test_a_request_id_that_the_service_would_not_honour_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"UUID|zeros"):
        request_id(launch(request_id=bad))


def test_hyperdisk_goes_with_the_families_that_take_nothing_else() -> None:
    mine = GcpSettings(project="p", disk_type="pd-ssd", disk_types={"a3-highgpu": "pd-balanced"})
    assert [disk_type(SITE, name) for name in ("a4-highgpu-8g", "a2-ultragpu-8g")] == [
        "hyperdisk-balanced",
        "pd-balanced",
    ]
    assert [disk_type(mine, name) for name in ("a4-highgpu-8g", "a2-ultragpu-8g", "a3-highgpu-8g")] == [
        "hyperdisk-balanced",
        "pd-ssd",
        "pd-balanced",
    ]
    fast = GcpSettings(project="p", disk_type="hyperdisk-extreme")
    assert disk_type(fast, "a4-highgpu-8g") == "hyperdisk-extreme"


def interface(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = insert_body(launch(), GcpSettings(project="p", **changes), PAPERS)["networkInterfaces"][0]
    return found


def test_a_subnetwork_brings_its_own_network_and_may_be_another_projects() -> None:
    assert interface() == {
        "network": "global/networks/default",
        "accessConfigs": [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}],
    }
    shared = "projects/host/regions/{region}/subnetworks/gpus"
    assert interface(subnetwork=shared, external_address=False) == {
        "subnetwork": "projects/host/regions/us-central1/subnetworks/gpus"
    }
    assert interface(network="mine", subnetwork="sub", external_address=False) == {
        "network": "global/networks/mine",
        "subnetwork": "regions/us-central1/subnetworks/sub",
    }


def metadata(site: GcpSettings, sent: Launch) -> dict[str, str]:
    return {item["key"]: item["value"] for item in insert_body(sent, site, PAPERS)["metadata"]["items"]}


def test_an_image_with_its_own_driver_is_not_asked_to_install_one() -> None:
    assert metadata(SITE, launch())["install-nvidia-driver"] == "True"
    assert "install-nvidia-driver" not in metadata(GcpSettings(project="p", install_driver=False), launch())
    assert "install-nvidia-driver" not in metadata(SITE, launch(rung=rung("e2-standard-2", 0)))


def test_machines_without_gpus_have_an_image_of_their_own() -> None:
    both = GcpSettings(project="p", image="gpu-image", cpu_image="cpu-image")
    assert (image(both, 8), image(both, 0)) == ("gpu-image", "cpu-image")
    assert image(GcpSettings(project="p", image="one"), 0) == "one"
    assert image(SITE, 0) != image(SITE, 1)


def test_of_secrets_only_names_travel_and_the_token_reaches_secret_manager_only_then() -> None:
    named = GcpSettings(project="p", secrets={"HF_TOKEN": "projects/other/secrets/hf/versions/3"})
    sent = launch(secrets=("HF_TOKEN", "WANDB_API_KEY"))
    body = insert_body(sent, named, PAPERS)
    assert metadata(named, sent)["widelane-secrets"].split() == [
        "HF_TOKEN=projects/other/secrets/hf/versions/3",
        "WANDB_API_KEY=projects/p/secrets/WANDB_API_KEY/versions/latest",
    ]
    assert body["serviceAccounts"][0]["scopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    plain = insert_body(launch(), named, PAPERS)
    assert "cloud-platform" not in json.dumps(plain)
    assert "widelane-secrets" not in json.dumps(plain)


def test_metadata_values_fit_the_service() -> None:
    items = insert_body(launch(), SITE, startup())["metadata"]["items"]
    assert all(len(item["value"].encode()) < 256 * 1024 for item in items)
    assert {item["key"] for item in items} >= {"startup-script", "widelane-bootstrap", "widelane-lease"}
