"""What a machine is made of where `[lanes.gcp]` leaves it to the lane."""

from __future__ import annotations

from widelane.config import GcpSettings

GPU_IMAGE = "projects/deeplearning-platform-release/global/images/family/common-cu129-ubuntu-2404-nvidia-580"
CPU_IMAGE = "projects/debian-cloud/global/images/family/debian-12"
IMAGE_MINIMUM_GIB = 100
"""Smallest boot disk that the stock deep-learning images fit on."""
DEFAULT_DISK_GIB = 200
SCOPES = (
    "https://www.googleapis.com/auth/devstorage.read_write",
    "https://www.googleapis.com/auth/compute",
)
"""What the host does with its token: read and write the store, delete its own instance."""
SECRET_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
"""In their place where it also reads secrets: Secret Manager knows no narrower scope. Roles are what bounds it."""

_HYPERDISK_ONLY = frozenset({"a3-ultragpu", "a4-highgpu", "a4x-highgpu", "g4-standard"})


def image(settings: GcpSettings, gpus: int) -> str:
    """The configured image, else a stock one: with a driver for machines with GPUs."""
    if gpus:
        return settings.image or GPU_IMAGE
    return settings.cpu_image or settings.image or CPU_IMAGE


def disk_type(settings: GcpSettings, machine_type: str) -> str:
    """The boot disk type configured for the machine's family, else the configured one if the family takes it."""
    family = machine_type.rpartition("-")[0]
    if family in settings.disk_types:
        return settings.disk_types[family]
    if family in _HYPERDISK_ONLY and not settings.disk_type.startswith("hyperdisk"):
        return "hyperdisk-balanced"
    return settings.disk_type or "pd-balanced"


def disk_gib(settings: GcpSettings, needed: int | None) -> int:
    """Boot disk size: what the work needs, else the configured size; never below the image's minimum."""
    return max(needed or settings.disk_gib or DEFAULT_DISK_GIB, IMAGE_MINIMUM_GIB)


def network_interface(settings: GcpSettings, region: str) -> dict[str, object]:
    """The one interface; without an access config it has no external address."""
    interface: dict[str, object] = {}
    if settings.network != "default" or not settings.subnetwork:
        # A subnetwork brings its network along; the default one beside another's subnetwork would be refused.
        interface["network"] = _path(settings.network, "global/networks")
    if settings.subnetwork:
        subnetwork = settings.subnetwork.replace("{region}", region)
        interface["subnetwork"] = _path(subnetwork, f"regions/{region}/subnetworks")
    if settings.external_address:
        interface["accessConfigs"] = [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}]
    return interface


def secret_resource(settings: GcpSettings, name: str) -> str:
    """The version of a secret that is read: the latest, unless the configuration names one."""
    resource = settings.secrets.get(name, f"projects/{settings.project}/secrets/{name}").strip("/")
    return resource if "/versions/" in resource else f"{resource}/versions/latest"


def _path(name: str, folder: str) -> str:
    return name if "/" in name else f"{folder}/{name}"
