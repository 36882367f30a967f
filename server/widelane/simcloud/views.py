"""The REST resources, as the service shows them."""

from __future__ import annotations

from widelane.models.catalog import MachineType
from widelane.simcloud.actions import label_fingerprint
from widelane.simcloud.atlas import region_of
from widelane.simcloud.records import Instance, Json, Operation, Status
from widelane.simcloud.refusals import phrase
from widelane.simcloud.timebase import stamp
from widelane.simcloud.world import World

BASE = "https://www.googleapis.com/compute/v1"


def instance(world: World, it: Instance) -> Json:
    """An instance resource: what was asked for, and how it stands."""
    zone = _zone_link(world, it.zone)
    scheduling = {
        "onHostMaintenance": "MIGRATE",
        "automaticRestart": it.model == "STANDARD",
        **it.scheduling,
        "provisioningModel": it.model.value,
        "preemptible": it.model == "SPOT",
    }
    shown: Json = {
        **{key: value for key, value in it.body.items() if key != "params"},
        "kind": "compute#instance",
        "id": it.id,
        "zone": zone,
        "machineType": f"{zone}/machineTypes/{it.machine_type}",
        "selfLink": f"{BASE}/{world.path(it.zone, it.name)}",
        "creationTimestamp": stamp(world.time.began, it.created),
        "status": status(world, it).value,
        "labels": it.labels,
        "labelFingerprint": label_fingerprint(it),
        "scheduling": scheduling,
    }
    if it.started is not None:
        shown["lastStartTimestamp"] = stamp(world.time.began, it.started)
    if it.stopped is not None:
        shown["lastStopTimestamp"] = stamp(world.time.began, it.stopped)
    if it.ends_at is not None:
        until = stamp(world.time.began, it.ends_at)
        shown["resourceStatus"] = {"scheduling": {"terminationTimestamp": until}}
    return shown


def status(world: World, it: Instance) -> Status:
    """STAGING is the second half of booting."""
    if it.status is Status.PROVISIONING and it.granted and it.due is not None:
        return Status.STAGING if it.due - world.now() < world.scenario.boot / 2 else Status.PROVISIONING
    return it.status


def operation(world: World, it: Operation) -> Json:
    """A zone operation resource."""
    zone = _zone_link(world, it.zone)
    inserted = stamp(world.time.began, it.inserted)
    shown: Json = {
        "kind": "compute#operation",
        "id": it.id,
        "name": it.name,
        "zone": zone,
        "operationType": it.kind,
        "targetLink": f"{BASE}/{world.path(it.zone, it.target)}",
        "targetId": it.target_id,
        "status": "DONE" if it.done else "RUNNING",
        "user": it.user,
        "progress": 100 if it.done else 0,
        "insertTime": inserted,
        "startTime": inserted,
        "selfLink": f"{zone}/operations/{it.name}",
    }
    if it.request_id:
        shown["clientOperationId"] = it.request_id
    if it.ended is not None:
        shown["endTime"] = stamp(world.time.began, it.ended)
    if it.errors:
        shown["error"] = {"errors": it.errors}
        shown["httpErrorStatusCode"] = it.http_status
        shown["httpErrorMessage"] = phrase(it.http_status)
    return shown


def region(world: World, name: str) -> Json:
    """A region resource; without quotas when the scenario has none for it."""
    link = f"{BASE}/projects/{world.scenario.project}/regions/{name}"
    zones = [_zone_link(world, zone) for zone in world.atlas.zones_of(name)]
    shown: Json = {"kind": "compute#region", "id": _number(name), "name": name, "selfLink": link, "status": "UP"}
    shown["zones"] = zones
    limits = world.scenario.quotas.get(name)
    if limits is not None:
        shown["quotas"] = _quotas(limits, world.region_usage(name))
    return shown


def project(world: World) -> Json:
    """The project resource with its quotas."""
    name = world.scenario.project
    return {
        "kind": "compute#project",
        "id": _number(name),
        "name": name,
        "selfLink": f"{BASE}/projects/{name}",
        "creationTimestamp": stamp(world.time.began, 0.0),
        "defaultServiceAccount": service_account(world),
        "quotas": _quotas(world.scenario.global_quotas, world.global_usage()),
    }


def zone(world: World, name: str) -> Json:
    """A zone resource."""
    region_link = f"{BASE}/projects/{world.scenario.project}/regions/{region_of(name)}"
    link = _zone_link(world, name)
    return {
        "kind": "compute#zone",
        "id": _number(name),
        "name": name,
        "status": "UP",
        "region": region_link,
        "selfLink": link,
    }


def machine_type(world: World, zone_name: str, row: MachineType) -> Json:
    """A machine type resource."""
    shown: Json = {
        "kind": "compute#machineType",
        "id": _number(row.name),
        "name": row.name,
        "zone": zone_name,
        "guestCpus": row.vcpus,
        "memoryMb": int(row.memory_gib * 1024),
        "isSharedCpu": False,
        "selfLink": f"{_zone_link(world, zone_name)}/machineTypes/{row.name}",
    }
    if row.gpus:
        shown["accelerators"] = [{"guestAcceleratorType": row.gpu, "guestAcceleratorCount": row.gpus}]
    if row.local_ssd_gib:
        shown["bundledLocalSsds"] = {"partitionCount": row.local_ssd_gib // 375, "defaultInterface": "NVME"}
    return shown


def listing(kind: str, path: str, items: list[Json] | Json, token: str | None) -> Json:
    """A list answer."""
    shown: Json = {"kind": f"compute#{kind}", "id": path, "items": items, "selfLink": f"{BASE}/{path}"}
    if token is not None:
        shown["nextPageToken"] = token
    return shown


def service_account(world: World) -> str:
    """The project's default service account."""
    return f"{_number(world.scenario.project)}-compute@developer.gserviceaccount.com"


def project_number(world: World) -> str:
    """The project's number."""
    return _number(world.scenario.project)


def _quotas(limits: dict[str, float], used: dict[str, float]) -> list[Json]:
    return [{"metric": name, "limit": limit, "usage": used.get(name, 0.0)} for name, limit in sorted(limits.items())]


def _zone_link(world: World, name: str) -> str:
    return f"{BASE}/projects/{world.scenario.project}/zones/{name}"


def _number(name: str) -> str:
    """A decimal id that belongs to a name."""
    return str(10**11 + int.from_bytes(name.encode()[:16], "big") % (9 * 10**11))
