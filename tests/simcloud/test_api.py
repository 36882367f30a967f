"""The REST subset as the real client uses it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from google.api_core import exceptions
from google.cloud import compute_v1

from tests.fakes.simdesk import Clients, Desk, codes
from tests.fakes.simworld import ZONE

SCENARIO = """
clock: {rate: 300}
stock:
  - {zone: [us-central1-a, us-central1-c], machine_type: [a2-ultragpu-1g, a2-ultragpu-4g], count: 9}
  - {zone: us-east4-c, machine_type: a2-ultragpu-8g, model: SPOT, count: 1}
quotas:
  us-central1: {PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 16, A2_CPUS: 9.22337e+18}
global_quotas: {GPUS_ALL_REGIONS: 64}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp("api"), SCENARIO)
    yield desk
    desk.stop()


@pytest.fixture
def desk(server) -> Iterator[Desk]:
    yield server
    server.clear()


def test_an_instance_lives_from_insert_to_delete(desk):
    operation = desk.insert("vm", model="FLEX_START", labels={"widelane": "1"}, wait=600, limit=3600)
    assert operation.operation_type == "insert"
    done = desk.done(operation)
    assert (done.progress, codes(done), done.name) == (100, [], operation.name)
    vm = desk.get("vm")
    assert vm.status == "RUNNING"
    assert vm.id == done.target_id
    assert vm.machine_type.endswith(f"/zones/{ZONE}/machineTypes/a2-ultragpu-4g")
    assert (vm.scheduling.provisioning_model, vm.scheduling.max_run_duration.seconds) == ("FLEX_START", 3600)
    assert dict(vm.labels) == {"widelane": "1"}
    assert vm.resource_status.scheduling.termination_timestamp > vm.last_start_timestamp > vm.creation_timestamp
    assert vm.self_link == done.target_link
    assert not codes(desk.delete("vm"))
    with pytest.raises(exceptions.NotFound) as gone:
        desk.get("vm")
    assert gone.value.errors[0]["reason"] == "notFound"


def test_the_status_goes_through_booting(desk):
    operation = desk.insert("vm")
    seen = {desk.get("vm").status}
    while "RUNNING" not in seen:
        seen.add(desk.get("vm").status)
    assert seen <= {"PROVISIONING", "STAGING", "RUNNING"}
    assert desk.done(operation).status == compute_v1.Operation.Status.DONE


def test_a_stock_out_is_an_error_of_the_operation(desk):
    done = desk.done(desk.insert("vm", machine_type="a2-ultragpu-8g"))
    assert codes(done) == ["ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"]
    assert done.http_error_status_code == 503
    info = done.error.errors[0].error_details[2].error_info
    assert info.reason == "resource_availability"
    assert info.metadatas["zonesAvailable"] == "us-east4-c"


def test_a_quota_refusal_is_an_error_of_the_operation(desk):
    for number in range(4):
        desk.run(f"vm{number}")
    done = desk.done(desk.insert("vm4"))
    assert codes(done) == ["QUOTA_EXCEEDED"]
    assert done.http_error_status_code == 403
    quota = done.error.errors[0].error_details[0].quota_info
    assert (quota.metric_name, quota.limit, dict(quota.dimensions)) == (
        "compute.googleapis.com/preemptible_nvidia_a100_80gb_gpus",
        16.0,
        {"region": "us-central1"},
    )


def test_quotas_show_the_usage_of_live_instances(desk):
    def quotas():
        region = desk.clients.regions.get(project=desk.project, region="us-central1")
        project = desk.clients.projects.get(project=desk.project)
        return {each.metric: (each.limit, each.usage) for each in [*region.quotas, *project.quotas]}

    assert quotas()["GPUS_ALL_REGIONS"] == (64.0, 0.0)
    desk.run("vm")
    assert quotas() == {
        "A2_CPUS": (1e18, 48.0),
        "GPUS_ALL_REGIONS": (64.0, 4.0),
        "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS": (16.0, 4.0),
    }


def test_a_region_without_quotas_in_the_scenario_answers_without_any(desk):
    assert not desk.clients.regions.get(project=desk.project, region="us-east4").quotas
    with pytest.raises(exceptions.NotFound):
        desk.clients.regions.get(project=desk.project, region="us-nowhere1")


def test_a_repeated_request_id_answers_with_the_same_operation(desk):
    identity = str(uuid.uuid4())
    first = desk.insert("vm", request_id=identity)
    assert first.client_operation_id == identity
    assert desk.insert("vm", request_id=identity).name == first.name
    with pytest.raises(exceptions.Conflict) as conflict:
        desk.insert("vm", request_id=str(uuid.uuid4()))
    assert conflict.value.errors[0]["reason"] == "alreadyExists"
    desk.done(first)


def test_a_repeated_delete_answers_when_the_instance_is_gone(desk):
    desk.run("vm")
    request = compute_v1.DeleteInstanceRequest(
        project=desk.project, zone=ZONE, instance="vm", request_id=str(uuid.uuid4())
    )
    first = desk.done(desk.clients.instances.delete_unary(request))
    assert desk.clients.instances.delete_unary(request).name == first.name
    with pytest.raises(exceptions.NotFound):
        desk.delete("vm")


def test_a_machine_type_that_the_zone_does_not_offer_is_refused_at_once(desk):
    with pytest.raises(exceptions.BadRequest, match="does not exist in zone 'us-central1-f'"):
        desk.insert("vm", zone="us-central1-f")
    with pytest.raises(exceptions.BadRequest, match="do not support live migration"):
        desk.insert("vm", scheduling={"onHostMaintenance": "MIGRATE"})


def test_lists_filter_by_label_and_come_in_pages(desk):
    for number in range(5):
        desk.insert(f"vm{number}", machine_type="a2-ultragpu-1g", labels={"widelane": "1", "part": str(number % 2)})
    desk.insert("other", machine_type="a2-ultragpu-1g", labels={})

    def listed(**request):
        found = desk.clients.instances.list(compute_v1.ListInstancesRequest(project=desk.project, zone=ZONE, **request))
        return [[vm.name for vm in page.items] for page in found.pages]

    assert listed(filter="labels.widelane=1 AND labels.part=1") == [["vm1", "vm3"]]
    assert listed(filter="labels.widelane:*", max_results=2) == [["vm0", "vm1"], ["vm2", "vm3"], ["vm4"]]
    assert listed() == [["other", "vm0", "vm1", "vm2", "vm3", "vm4"]]
    with pytest.raises(exceptions.BadRequest):
        listed(filter="labels.widelane")


def test_the_aggregated_list_covers_every_zone(desk):
    desk.insert("here", labels={"widelane": "1"})
    desk.insert("there", zone="us-central1-c", labels={"widelane": "1"})
    desk.insert("foreign", zone="us-central1-c", labels={})
    request = compute_v1.AggregatedListInstancesRequest(project=desk.project, filter="labels.widelane=1", max_results=1)
    scopes = list(desk.clients.instances.aggregated_list(request))
    found = {(scope, vm.name) for scope, scoped in scopes for vm in scoped.instances}
    assert found == {("zones/us-central1-a", "here"), ("zones/us-central1-c", "there")}
    empty = dict(scopes)["zones/us-east4-c"]
    assert empty.warning.code == "NO_RESULTS_ON_PAGE"


def test_operations_can_be_found_again(desk):
    operation = desk.insert("vm", request_id=str(uuid.uuid4()))
    again = desk.clients.operations.get(project=desk.project, zone=ZONE, operation=operation.name)
    assert again.id == operation.id
    request = compute_v1.ListZoneOperationsRequest(
        project=desk.project, zone=ZONE, filter=f"clientOperationId={operation.client_operation_id}"
    )
    assert [each.name for each in desk.clients.operations.list(request)] == [operation.name]
    with pytest.raises(exceptions.NotFound):
        desk.clients.operations.get(project=desk.project, zone="us-central1-c", operation=operation.name)
    desk.done(operation)


def test_a_wait_may_end_before_the_operation_does(desk):
    """The service holds the call for two minutes at most, which is 0.4 s here."""
    desk.sim("POST", "stock", zone="us-central1-a", machine_type="a2-ultragpu-8g", model="FLEX_START", count=1)
    desk.run("holds", machine_type="a2-ultragpu-8g", model="FLEX_START")
    desk.run("small")
    desk.run("small2")
    waits = desk.insert("waits", model="FLEX_START", wait=7200)
    first = desk.clients.operations.wait(project=desk.project, zone=ZONE, operation=waits.name)
    assert first.status == compute_v1.Operation.Status.RUNNING
    assert desk.get("waits").status == "PENDING"
    desk.delete("holds")
    assert not codes(desk.done(waits))


def test_labels_are_set_with_the_current_fingerprint_only(desk):
    vm = desk.run("vm")
    request = compute_v1.InstancesSetLabelsRequest(labels={"a": "b"}, label_fingerprint=vm.label_fingerprint)
    desk.clients.instances.set_labels_unary(
        project=desk.project, zone=ZONE, instance="vm", instances_set_labels_request_resource=request
    )
    assert dict(desk.get("vm").labels) == {"a": "b"}
    with pytest.raises(exceptions.PreconditionFailed):
        desk.clients.instances.set_labels_unary(
            project=desk.project, zone=ZONE, instance="vm", instances_set_labels_request_resource=request
        )


def test_a_stopped_instance_stays(desk):
    desk.run("vm")
    desk.done(desk.clients.instances.stop_unary(project=desk.project, zone=ZONE, instance="vm"))
    assert desk.get("vm").status == "TERMINATED"
    assert desk.state_of("vm")["pid"] is None


def test_machine_types_and_zones_are_those_of_the_tables(desk):
    row = desk.clients.machine_types.get(project=desk.project, zone=ZONE, machine_type="a2-ultragpu-8g")
    assert (row.guest_cpus, row.memory_mb) == (96, 1360 * 1024)
    assert [(each.guest_accelerator_type, each.guest_accelerator_count) for each in row.accelerators] == [
        ("nvidia-a100-80gb", 8)
    ]
    names = {each.name for each in desk.clients.machine_types.list(project=desk.project, zone=ZONE)}
    assert {"a2-ultragpu-1g", "a2-ultragpu-8g"} <= names
    zones = {each.name for each in desk.clients.zones.list(project=desk.project)}
    assert {ZONE, "us-east4-c"} <= zones
    assert desk.clients.zones.get(project=desk.project, zone=ZONE).status == "UP"
    assert "us-central1" in {each.name for each in desk.clients.regions.list(project=desk.project)}


def test_another_project_or_zone_is_not_found(desk):
    with pytest.raises(exceptions.NotFound, match="projects/elsewhere"):
        desk.clients.instances.get(project="elsewhere", zone=ZONE, instance="vm")
    with pytest.raises(exceptions.NotFound, match="zones/nowhere"):
        desk.clients.instances.get(project=desk.project, zone="nowhere", instance="vm")


def test_what_is_not_simulated_says_so(desk):
    with pytest.raises(exceptions.NotFound, match="isn't simulated"):
        desk.clients.instances.start_unary(project=desk.project, zone=ZONE, instance="vm")


def test_a_token_that_no_metadata_server_gave_is_refused(desk):
    stranger = Clients(desk.endpoint.url, token="ya29.stolen")
    with pytest.raises(exceptions.Unauthorized):
        stranger.instances.get(project=desk.project, zone=ZONE, instance="vm")
    stranger.close()


def test_the_request_log_tells_what_was_asked(desk):
    before = desk.sim("GET", "requests")["requests"][-1]["seq"]
    desk.run("vm", metadata={"long": "x" * 1000})
    log = desk.sim("GET", f"requests?since={before}")["requests"]
    (insert,) = [entry for entry in log if entry.get("method") == "insert"]
    assert (insert["status"], insert["zone"], insert["body"]["labels"]) == (200, ZONE, {"widelane": "1"})
    assert insert["body"]["metadata"]["items"][0]["value"].endswith("... (1000 characters)")
    assert log[-1]["method"] == "get"
