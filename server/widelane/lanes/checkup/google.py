"""The checks of Google Cloud: library, credentials, project, quotas, image, network and bucket, by plain GETs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import Any

from widelane.config import GcpSettings, Settings
from widelane.facts import load_policy
from widelane.lanes.checkup.reads import Reads
from widelane.lanes.checkup.sheet import Sheet
from widelane.lanes.gcp.client import LOGIN, is_loopback
from widelane.lanes.gcp.defaults import image, network_interface
from widelane.models.attempt import Failure, Outcome

_GPUS = "GPUS_ALL_REGIONS"
_QUOTAS = "https://console.cloud.google.com/iam-admin/quotas"


def examine(sheet: Sheet, settings: Settings, _place: str, _env: Mapping[str, str]) -> None:
    """Read the project and what machines are made of."""
    gcp = settings.gcp or GcpSettings(project="")
    missing = [name for name in ("google.auth", "google.cloud.compute_v1") if not _installed(name)]
    if missing:
        sheet.fail("library", f"{', '.join(missing)} isn't installed", "pip install 'widelane[gcp]'")
        return
    _store(sheet, settings, gcp)
    reads = Reads(gcp.endpoint)
    try:
        refused = reads.login()
        if refused is not None:
            sheet.fail("reach" if refused.passing else "credentials", refused.message, refused.fix)
            return
        sheet.ok("credentials", "none are needed: a simulation" if is_loopback(gcp.endpoint) else "they give a token")
        if _project(sheet, reads, gcp):
            for region in gcp.regions or load_policy(settings.policy, str(settings.file or "")).regions:
                _region(sheet, reads, gcp, region)
            _image(sheet, reads, gcp)
    finally:
        reads.close()


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _store(sheet: Sheet, settings: Settings, gcp: GcpSettings) -> None:
    """Machines there can't reach a folder of this machine."""
    shared = gcp.bucket or (settings.store or "").startswith("gs:")
    if not shared and not is_loopback(gcp.endpoint):
        fix = f"gcloud storage buckets create gs://NAME --project {gcp.project}, then set bucket in [lanes.gcp]"
        sheet.fail("store", "machines on Google Cloud have no store that they can reach", fix)


def _project(sheet: Sheet, reads: Reads, gcp: GcpSettings) -> bool:
    """The project with its global quotas; whether there is any use in asking on."""
    before = time.time()
    got = reads.get(f"projects/{gcp.project}")
    if got.failure is not None:
        _refused(sheet, "reach" if got.failure.outcome is Outcome.TRANSIENT else "project", got.failure, gcp.project)
        return False
    sheet.ok("project", gcp.project)
    if got.date and not is_loopback(gcp.endpoint):
        sheet.clock(before - parsedate_to_datetime(got.date).timestamp(), "Google Cloud")
    limit = _limit(got.document, _GPUS)
    if limit == 0:
        fix = f"ask for {_GPUS} at {_QUOTAS}?project={gcp.project}"
        sheet.warn("quotas", f"{_GPUS} is 0: no GPU of any region", fix)
    elif limit is not None:
        sheet.ok("quotas", f"{_GPUS} is {limit:g}")
    return True


def _region(sheet: Sheet, reads: Reads, gcp: GcpSettings, region: str) -> None:
    name = f"quotas of {region}"
    got = reads.get(f"projects/{gcp.project}/regions/{region}")
    if got.failure is not None:
        _refused(sheet, name, got.failure, region)
        return
    listed: list[dict[str, Any]] = got.document.get("quotas", [])
    pools = [str(row.get("metric", "")) for row in listed if "GPUS" in str(row.get("metric", "")) and row.get("limit")]
    if not listed:
        sheet.warn(name, "it answers without quotas: they count as unknown", "try again later")
    elif pools:
        sheet.ok(name, f"{len(pools)} GPU metrics are above 0")
    else:
        sheet.warn(name, "every GPU metric is 0", f"ask for GPUs in {region} at {_QUOTAS}?project={gcp.project}")
    _network(sheet, reads, gcp, region)


def _network(sheet: Sheet, reads: Reads, gcp: GcpSettings, region: str) -> None:
    """The network or subnetwork that an insert would name."""
    interface = network_interface(gcp, region)
    path = str(interface.get("subnetwork") or interface.get("network"))
    got = reads.get(path if path.startswith("projects/") else f"projects/{gcp.project}/{path}")
    name = f"network of {region}"
    if got.untold:
        sheet.ok(name, f"{path}: this service doesn't tell of networks")
    elif got.failure is not None:
        fix = f"set {'subnetwork' if 'subnetwork' in interface else 'network'} in [lanes.gcp] to one that exists"
        sheet.fail(name, f"{path}: {got.failure.message}", got.failure.hint or fix)
    elif "subnetwork" in interface and not gcp.external_address and not got.document.get("privateIpGoogleAccess"):
        message = f"{path} has no Private Google Access, and machines get no external address"
        fix = "gcloud compute networks subnets update SUBNET --enable-private-ip-google-access, or a Cloud NAT"
        sheet.warn(name, message, fix)
    else:
        sheet.ok(name, path)


def _image(sheet: Sheet, reads: Reads, gcp: GcpSettings) -> None:
    path = image(gcp, 1)
    got = reads.get(path if path.startswith("projects/") else f"projects/{gcp.project}/{path}")
    if got.untold:
        sheet.ok("image", f"{path}: this service doesn't tell of images")
    elif got.failure is not None:
        fix = got.failure.hint or "set image in [lanes.gcp] to one that exists"
        sheet.fail("image", f"{path}: {got.failure.message}", fix)
    elif got.document.get("deprecated", {}).get("state", "ACTIVE") != "ACTIVE":
        sheet.warn(
            "image", f"{path} is {got.document['deprecated']['state']}", "set image in [lanes.gcp] to a newer one"
        )
    else:
        sheet.ok("image", f"{got.document.get('name', path)}")


def _limit(document: Mapping[str, Any], metric: str) -> float | None:
    listed: list[dict[str, Any]] = document.get("quotas", [])
    return next((float(row["limit"]) for row in listed if row.get("metric") == metric and "limit" in row), None)


def _refused(sheet: Sheet, name: str, failure: Failure, what: str) -> None:
    fix = failure.hint or f"does the account see it? `gcloud compute project-info describe`; or log in again: {LOGIN}"
    sheet.fail(name, f"{what}: {failure.message or failure.code}", fix)
