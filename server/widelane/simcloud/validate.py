"""The checks that Compute Engine makes before it accepts an insert."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from widelane.models.catalog import MachineType
from widelane.models.plan import ProvisioningModel
from widelane.simcloud.atlas import Atlas
from widelane.simcloud.records import Json, seconds
from widelane.simcloud.refusals import Refused, bad_request, invalid, not_offered

NAME = r"(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)"
VALUE_MAX = 256 * 1024
METADATA_MAX = 512 * 1024
FLEX_RUN = (600.0, 604800.0)
FLEX_WAIT = (90.0, 7200.0)

_LABEL_KEY = re.compile(r"[^\W\d_A-Z][-_\w]{0,62}")
_LABEL_VALUE = re.compile(r"[-_\w]{0,63}")
_METADATA_KEY = re.compile(r"[-_a-zA-Z0-9]{1,128}")


@dataclass(frozen=True, slots=True)
class Request:
    """An insert that was accepted."""

    name: str
    row: MachineType
    model: ProvisioningModel
    labels: dict[str, str]
    body: Json
    wait: float
    """Seconds that a flex-start request may queue; 0: not at all."""


def insert_request(body: object, zone: str, atlas: Atlas) -> Request:
    """The insert that a body asks for. Raises Refused in the service's words."""
    resource = _map(body, "resource")
    name = str(resource.get("name", ""))
    if not re.fullmatch(NAME, name):
        raise invalid("resource.name", name, f"Must be a match of regex '{NAME}'")
    row = _machine_type(resource, zone, atlas)
    labels = check_labels(resource.get("labels"))
    _metadata(resource)
    scheduling = _map(resource.get("scheduling", {}), "resource.scheduling")
    model = _model(scheduling, row)
    _maintenance(scheduling, row, model)
    _run_limit(scheduling, model)
    wait = _wait(resource, model)
    _parts(resource)
    return Request(name, row, model, labels, resource, wait)


def check_request_id(request_id: str) -> None:
    """A request id must be a UUID other than zero."""
    try:
        parsed = uuid.UUID(request_id)
    except ValueError:
        parsed = uuid.UUID(int=0)
    if parsed.int == 0:
        raise invalid("requestId", request_id, "Must be a valid UUID other than the zero UUID.")


def check_labels(given: object) -> dict[str, str]:
    """Labels as they may be set; None: none."""
    labels = {str(key): str(value) for key, value in _map(given or {}, "resource.labels").items()}
    if len(labels) > 64:
        raise invalid("resource.labels", "", "The number of labels exceeds the limit of 64.")
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or key != key.lower():
            why = "The key must start with a lowercase character, can only contain lowercase letters, "
            raise _label_refused("key", key, why + "numeric characters, underscores and dashes.")
        if not _LABEL_VALUE.fullmatch(value) or value != value.lower():
            why = "The value can only contain lowercase letters, numeric characters, underscores and dashes."
            raise _label_refused("value", value, why)
    return labels


def _label_refused(what: str, text: str, why: str) -> Refused:
    rest = f"The {what} can be at most 63 characters long. International characters are allowed."
    return invalid("resource.labels", "", f"Label {what} '{text}' violates format constraints. {why} {rest}")


def _map(value: object, field: str) -> Json:
    if not isinstance(value, Mapping):
        raise invalid(field, value, "An object is required.")
    return dict(cast("Mapping[str, object]", value))


def _maps(value: object, field: str) -> list[Json]:
    if not isinstance(value, list):
        raise invalid(field, value, "A list is required.")
    return [_map(item, f"{field}[{index}]") for index, item in enumerate(cast("list[object]", value))]


def _machine_type(resource: Json, zone: str, atlas: Atlas) -> MachineType:
    given = str(resource.get("machineType", ""))
    found = re.fullmatch(r"(?:.*/)?zones/([^/]+)/machineTypes/([^/]+)", given)
    if found is None or found[1] != zone:
        raise invalid("resource.machineType", given, f"The URL is malformed or isn't in zone '{zone}'.")
    row = atlas.find(zone, found[2])
    if row is None:
        raise not_offered(zone, found[2])
    return row


def _metadata(resource: Json) -> None:
    metadata = _map(resource.get("metadata", {}), "resource.metadata")
    items = _maps(metadata.get("items", []), "resource.metadata.items")
    keys: set[str] = set()
    total = 0
    for index, item in enumerate(items):
        key, value = str(item.get("key", "")), str(item.get("value", ""))
        field = f"resource.metadata.items[{index}]"
        if not _METADATA_KEY.fullmatch(key):
            raise invalid(f"{field}.key", key, "Must be a match of regex '[a-zA-Z0-9-_]{1,128}'")
        if key in keys:
            raise invalid("resource.metadata", "", f"Duplicate metadata key: '{key}'.")
        keys.add(key)
        size = len(value.encode())
        total += size + len(key)
        if size > VALUE_MAX:
            raise _too_large(f"{field}.value", VALUE_MAX, size)
    if total > METADATA_MAX:
        raise _too_large("resource.metadata", METADATA_MAX, total)


def _too_large(field: str, most: int, size: int) -> Refused:
    return bad_request(f"Value for field '{field}' is too large: maximum size {most} character(s); actual size {size}.")


def _model(scheduling: Json, row: MachineType) -> ProvisioningModel:
    preemptible = scheduling.get("preemptible") is True
    word = str(scheduling.get("provisioningModel", "SPOT" if preemptible else "STANDARD"))
    field = "resource.scheduling.provisioningModel"
    if word not in set(ProvisioningModel):
        raise invalid(field, word, f"Supported here: {', '.join(ProvisioningModel)}.")
    if preemptible and word != ProvisioningModel.SPOT:
        raise invalid(field, word, "For preemptible, only allowed provisioning_model value is SPOT")
    model = ProvisioningModel(word)
    if model not in row.provisioning_models:
        raise bad_request(f"[{row.name}, {word}] features are not compatible for creating instance.")
    return model


def _maintenance(scheduling: Json, row: MachineType, model: ProvisioningModel) -> None:
    migrates = scheduling.get("onHostMaintenance", "MIGRATE") == "MIGRATE"
    standard = model is ProvisioningModel.STANDARD
    if row.gpus and migrates:
        raise bad_request("Instances with guest accelerators do not support live migration.")
    if not standard and scheduling.get("onHostMaintenance") == "MIGRATE":
        raise bad_request(f"Scheduling must have onHostMaintenance TERMINATE when provisioningModel is {model.value}.")
    if not standard and scheduling.get("automaticRestart") is True:
        raise bad_request("Scheduling must have preemptible be false when AutomaticRestart is true.")


def _run_limit(scheduling: Json, model: ProvisioningModel) -> None:
    field = "resource.scheduling.maxRunDuration"
    limit = _duration(scheduling.get("maxRunDuration"), field)
    action = scheduling.get("instanceTerminationAction")
    if action not in {None, "STOP", "DELETE"}:
        raise invalid("resource.scheduling.instanceTerminationAction", action, "Must be STOP or DELETE.")
    if model is ProvisioningModel.FLEX_START and (limit is None or action is None):
        missing = "maxRunDuration" if limit is None else "instanceTerminationAction"
        raise bad_request(f"Scheduling must have {missing} when provisioningModel is FLEX_START.")
    if model is ProvisioningModel.STANDARD and (limit is None) != (action is None):
        raise bad_request("Scheduling must have instanceTerminationAction exactly when it has maxRunDuration.")
    least, most = FLEX_RUN if model is ProvisioningModel.FLEX_START else (30.0, 120 * 86400.0)
    if limit is not None and not least <= limit <= most:
        raise invalid(field, f"{limit:.0f}s", f"Must be between {least:.0f} and {most:.0f} seconds.")


def _wait(resource: Json, model: ProvisioningModel) -> float:
    field = "resource.params.requestValidForDuration"
    given = _map(resource.get("params", {}), "resource.params").get("requestValidForDuration")
    wait = _duration(given, field) or 0.0
    if wait and model is not ProvisioningModel.FLEX_START:
        raise invalid(field, f"{wait:.0f}s", "Only allowed when provisioningModel is FLEX_START.")
    if wait and not FLEX_WAIT[0] <= wait <= FLEX_WAIT[1]:
        raise invalid(field, f"{wait:.0f}s", "Must be 0, or between 90 and 7200 seconds.")
    return wait


def _duration(given: object, field: str) -> float | None:
    try:
        return seconds(_map(given, field)) if given is not None else None
    except (TypeError, ValueError) as error:
        raise invalid(field, given, "Must be a Duration, {seconds, nanos}.") from error


def _parts(resource: Json) -> None:
    disks = _maps(resource.get("disks", []), "resource.disks")
    if not any(disk.get("boot") for disk in disks):
        raise invalid("resource.disks", "", "No boot disk is specified.")
    if not _maps(resource.get("networkInterfaces", []), "resource.networkInterfaces"):
        raise invalid("resource.networkInterfaces", "", "At least one network interface is required.")
