"""Refusals have the words and the shape of the recorded ones, and come where the service gives them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.simworld import ATLAS, CASES, ZONE, instance_body
from widelane.models.catalog import MachineType
from widelane.models.plan import ProvisioningModel
from widelane.simcloud import refusals
from widelane.simcloud.quota import Shortfall
from widelane.simcloud.refusals import Refused
from widelane.simcloud.scenario import Combination
from widelane.simcloud.validate import METADATA_MAX, VALUE_MAX, check_labels, insert_request


def errors(case: str) -> list[dict[str, Any]]:
    return CASES[case]["body"]["error"]["errors"]


def with_gpu(name: str, gpu: str, gpus: int) -> MachineType:
    """A machine type of the recorded cases that the tables don't have in that form."""
    return ATLAS.machine_types["a2-ultragpu-1g"].model_copy(update={"name": name, "gpu": gpu, "gpus": gpus})


@pytest.mark.parametrize(
    ("case", "gpu", "zone", "elsewhere"),
    [
        (
            "zone_pool_exhausted_with_details_zones_suggested",
            ("n1-standard-4", "nvidia-tesla-t4", 1),
            "us-central1-b",
            ("us-central1-a", "us-central1-f"),
        ),
        ("zone_pool_exhausted_with_details_no_zones", ("g2-standard-4", "nvidia-l4", 1), "us-central1-b", ()),
    ],
)
def test_a_stock_out_reads_as_recorded(case, gpu, zone, elsewhere):
    wanted = Combination(zone, gpu[0], ProvisioningModel.SPOT)
    made = refusals.stockout("proj-example", wanted, with_gpu(*gpu), elsewhere)
    assert made == {"status": CASES[case]["http_status"], "errors": errors(case)}


@pytest.mark.parametrize(
    ("case", "metric", "limit", "region"),
    [
        ("quota_gpus_all_regions_zero", "GPUS_ALL_REGIONS", 0.0, None),
        ("quota_preemptible_h100_region", "PREEMPTIBLE_NVIDIA_H100_GPUS", 1.0, "us-central1"),
        ("quota_a2_cpus", "A2_CPUS", 12.0, "us-central1"),
        ("quota_ssd_total", "SSD_TOTAL_GB", 500.0, "us-central1"),
    ],
)
def test_a_quota_refusal_reads_as_recorded(case, metric, limit, region):
    made = refusals.quota_exceeded(Shortfall(metric, limit, 0.0, 99.0, region))
    assert made == {"status": CASES[case]["http_status"], "errors": errors(case)}


@pytest.mark.parametrize(
    ("case", "made"),
    [
        ("config_machine_type_not_in_zone", refusals.not_offered("europe-west8-a", "f1-micro")),
        (
            "conflict_http_already_exists",
            refusals.already_exists("projects/proj-example/zones/us-east1-d/instances/wl-0001"),
        ),
        ("perm_invalid_credentials", refusals.unauthenticated()),
        ("perm_scopes", refusals.out_of_scope()),
        (
            "transient_operation_not_found_404",
            refusals.not_found(
                "projects/proj-example/zones/us-central1-a/operations/"
                "operation-1780000000000-0123456789abc-01234567-89abcdef"
            ),
        ),
        (
            "config_live_migration",
            refusals.bad_request("Instances with guest accelerators do not support live migration."),
        ),
    ],
)
def test_an_http_refusal_reads_as_recorded(case, made):
    assert (made.status, made.body) == (CASES[case]["http_status"], CASES[case]["body"])


def refused(change: dict[str, Any], **shape: Any) -> Refused:
    """How the service refuses an insert that differs from a good one."""
    machine_type, model = shape.pop("machine_type", "a2-ultragpu-4g"), shape.pop("model", "SPOT")
    body = {**instance_body("vm", ZONE, machine_type, model, **shape), **change}
    with pytest.raises(Refused) as raised:
        insert_request(body, ZONE, ATLAS)
    return raised.value


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ({"scheduling": {"onHostMaintenance": "MIGRATE"}}, "do not support live migration"),
        ({"scheduling": {"provisioningModel": "FLEX-START"}}, "'FLEX-START'"),
        ({"scheduling": {"automaticRestart": True}}, "AutomaticRestart"),
        ({"model": "STANDARD", "machine_type": "a3-highgpu-1g"}, "features are not compatible"),
        ({"model": "FLEX_START", "scheduling": {"maxRunDuration": None}}, "maxRunDuration"),
        ({"model": "FLEX_START", "scheduling": {"instanceTerminationAction": None}}, "instanceTerminationAction"),
        ({"model": "FLEX_START", "limit": 599}, "'599s'"),
        ({"model": "FLEX_START", "limit": 604801}, "'604801s'"),
        ({"model": "FLEX_START", "wait": 89}, "requestValidForDuration"),
        ({"model": "FLEX_START", "wait": 7201}, "requestValidForDuration"),
        ({"model": "SPOT", "wait": 600}, "Only allowed when provisioningModel is FLEX_START"),
        ({"model": "STANDARD", "scheduling": {"instanceTerminationAction": None}}, "instanceTerminationAction"),
        ({"scheduling": {"instanceTerminationAction": "PAUSE"}}, "'PAUSE'"),
        ({"labels": {"Widelane": "1"}}, "Label key 'Widelane'"),
        ({"labels": {"widelane": "A B"}}, "Label value 'A B'"),
        ({"labels": {"x": "v" * 64}}, "at most 63 characters"),
        ({"labels": {f"k{n}": "" for n in range(65)}}, "64"),
        ({"metadata": {"big": "x" * (VALUE_MAX + 1)}}, "resource.metadata.items[0].value' is too large"),
        ({"metadata": {f"k{n}": "x" * (METADATA_MAX // 2) for n in range(3)}}, "is too large"),
        ({"metadata": {"a b": "x"}}, "resource.metadata.items[0].key"),
    ],
)
def test_a_bad_insert_is_a_400_that_names_the_field(shape, words):
    answer = refused({}, **shape)
    assert answer.status == 400
    assert words in answer.body["error"]["message"]
    assert answer.body["error"]["errors"][0]["reason"] in {"invalid", "badRequest"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Upper"}, "resource.name"),
        ({"name": "x" * 64}, "resource.name"),
        ({"machineType": f"zones/{ZONE}/machineTypes/f1-micro"}, f"does not exist in zone '{ZONE}'"),
        ({"machineType": "a2-ultragpu-4g"}, "resource.machineType"),
        ({"machineType": "zones/us-east4-c/machineTypes/a2-ultragpu-4g"}, "isn't in zone"),
        ({"disks": []}, "resource.disks"),
        ({"disks": "x"}, "A list is required"),
        ({"networkInterfaces": []}, "resource.networkInterfaces"),
        ({"metadata": {"items": [{"key": "a"}, {"key": "a"}]}}, "Duplicate metadata key"),
        ({"metadata": {"items": ["a"]}}, "An object is required"),
        ({"scheduling": []}, "An object is required"),
        ({"params": {"requestValidForDuration": {"seconds": "soon"}}}, "Must be a Duration"),
    ],
)
def test_a_malformed_insert_is_a_400_too(change, words):
    answer = refused(change)
    assert answer.status == 400
    assert words in answer.body["error"]["message"]


def test_unknown_fields_are_accepted():
    body = {**instance_body("vm", ZONE, "a2-ultragpu-4g", "SPOT"), "newFieldOfNextYear": {"a": 1}}
    assert insert_request(json.loads(json.dumps(body)), ZONE, ATLAS).name == "vm"


@pytest.mark.parametrize(
    "labels", [{"widelane-run": "01jx-3_z"}, {"k": ""}, {"k" * 63: "v" * 63}, {"größe": "groß"}, None]
)
def test_good_labels_are_kept(labels):
    assert check_labels(labels) == (labels or {})


@pytest.mark.parametrize(("wait", "limit"), [(0, 600), (90, 604800), (7200, 3600)])
def test_the_bounds_of_flex_start_are_allowed(wait, limit):
    body = instance_body("vm", ZONE, "a2-ultragpu-4g", "FLEX_START", wait=wait, limit=limit)
    assert insert_request(body, ZONE, ATLAS).wait == wait


def test_a_machine_without_gpu_may_migrate():
    body = instance_body("vm", ZONE, "e2-standard-2", "STANDARD", scheduling={"onHostMaintenance": "MIGRATE"})
    assert insert_request(body, ZONE, ATLAS).row.gpus == 0
