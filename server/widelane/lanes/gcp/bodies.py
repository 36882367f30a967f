"""The body of a create. Pure: the same launch gives the same document, byte for byte."""

from __future__ import annotations

import re
import uuid
from typing import Any

from widelane.config import GcpSettings
from widelane.lanes.gcp import defaults
from widelane.lanes.gcp.startup import Startup
from widelane.lanes.protocol import Launch
from widelane.models.plan import ProvisioningModel

SHORTEST_RUN_SECONDS = 600
LONGEST_RUN_SECONDS = 604_800
SHORTEST_WAIT_SECONDS = 90
LONGEST_WAIT_SECONDS = 7_200

OURS = "widelane"
"""The label that every machine of ours carries, with value 1."""
ATTEMPT = "widelane-attempt"
_NOT_IN_LABELS = re.compile(r"[^a-z0-9_-]")


def label_value(text: str) -> str:
    """The text as a label value: lower case, at most 63 characters of [a-z0-9_-]."""
    return _NOT_IN_LABELS.sub("-", text.lower())[:63]


def region_of(zone: str) -> str:
    """us-central1 of us-central1-a."""
    return zone.rpartition("-")[0]


def request_id(launch: Launch) -> str:
    """The launch's request id. Raises ValueError unless it is a UUID that the service takes (not all zeros)."""
    if uuid.UUID(launch.request_id).int == 0:
        raise ValueError("a request id may not be all zeros")
    return launch.request_id


def insert_body(launch: Launch, settings: GcpSettings, startup: Startup) -> dict[str, Any]:
    """The instance resource of one create, in the wire's spelling."""
    zone, rung = launch.zone, launch.rung
    scopes = defaults.SECRET_SCOPES if launch.secrets else defaults.SCOPES
    body: dict[str, Any] = {
        "name": launch.name,
        "machineType": f"zones/{zone}/machineTypes/{rung.machine_type}",
        "labels": _labels(launch),
        "scheduling": _scheduling(launch),
        "disks": [_boot_disk(launch, settings)],
        "networkInterfaces": [defaults.network_interface(settings, region_of(zone))],
        "serviceAccounts": [{"email": settings.service_account, "scopes": list(scopes)}],
        "metadata": {"items": _metadata(launch, settings, startup)},
    }
    if rung.provisioning_model is ProvisioningModel.FLEX_START:
        body["params"] = {"requestValidForDuration": {"seconds": str(_wait_seconds(launch))}}
        body["reservationAffinity"] = {"consumeReservationType": "NO_RESERVATION"}
    return body


def _labels(launch: Launch) -> dict[str, str]:
    extra = {key: label_value(value) for key, value in launch.labels.items()}
    return {
        **extra,
        OURS: "1",
        "widelane-run": label_value(launch.run_id),
        "widelane-dispatch": label_value(launch.dispatch_id),
        ATTEMPT: label_value(launch.attempt_id),
        "widelane-key": label_value(launch.dispatch_key),
    }


def _scheduling(launch: Launch) -> dict[str, Any]:
    """Every machine deletes itself after its run limit, whoever is there to watch it."""
    seconds = min(max(launch.fence_seconds, SHORTEST_RUN_SECONDS), LONGEST_RUN_SECONDS)
    return {
        "provisioningModel": launch.rung.provisioning_model.value,
        "onHostMaintenance": "TERMINATE",
        "automaticRestart": False,
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": str(seconds)},
    }


def _wait_seconds(launch: Launch) -> int:
    """0 doesn't wait; anything else is bounded by what the service takes."""
    if launch.wait_seconds <= 0:
        return 0
    return min(max(launch.wait_seconds, SHORTEST_WAIT_SECONDS), LONGEST_WAIT_SECONDS)


def _boot_disk(launch: Launch, settings: GcpSettings) -> dict[str, Any]:
    machine_type = launch.rung.machine_type
    return {
        "boot": True,
        "autoDelete": True,
        "initializeParams": {
            "sourceImage": launch.image or defaults.image(settings, launch.rung.width),
            "diskSizeGb": str(defaults.disk_gib(settings, launch.disk_gib)),
            "diskType": f"zones/{launch.zone}/diskTypes/{defaults.disk_type(settings, machine_type)}",
        },
    }


def _metadata(launch: Launch, settings: GcpSettings, startup: Startup) -> list[dict[str, str]]:
    values = {
        "startup-script": startup.script,
        "widelane-bootstrap": startup.bootstrap,
        "widelane-store": launch.store_url,
        "widelane-spec": launch.spec_key,
        "widelane-runner-sha256": launch.runner_sha256,
        "widelane-lease": launch.attempt_id,
        "widelane-gpus": str(launch.rung.width),
        "enable-guest-attributes": "TRUE",
    }
    if launch.rung.width and settings.install_driver:
        values["install-nvidia-driver"] = "True"
    if launch.secrets:
        named = (f"{name}={defaults.secret_resource(settings, name)}" for name in launch.secrets)
        values["widelane-secrets"] = "\n".join(named)
    if settings.endpoint is not None:
        values["widelane-api-endpoint"] = settings.endpoint
    return [{"key": key, "value": value} for key, value in values.items()]
