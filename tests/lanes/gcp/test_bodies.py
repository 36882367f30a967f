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
from widelane.lanes.gcp.defaults import disk_type
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
    assert disk_type(SITE, "a4-highgpu-8g") == "hyperdisk-balanced"
    assert disk_type(SITE, "a2-ultragpu-8g") == "pd-balanced"
    assert disk_type(GcpSettings(project="p", disk_type="pd-ssd"), "a4-highgpu-8g") == "pd-ssd"


def test_metadata_values_fit_the_service() -> None:
    items = insert_body(launch(), SITE, startup())["metadata"]["items"]
    assert all(len(item["value"].encode()) < 256 * 1024 for item in items)
    assert {item["key"] for item in items} >= {"startup-script", "widelane-bootstrap", "widelane-lease"}
