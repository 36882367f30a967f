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

_HYPERDISK_ONLY = frozenset({"a3-ultragpu", "a4-highgpu", "a4x-highgpu", "g4-standard"})


def image(settings: GcpSettings, gpus: int) -> str:
    """The configured image, else a stock one: with a driver for machines with GPUs."""
    return settings.image or (GPU_IMAGE if gpus else CPU_IMAGE)


def disk_type(settings: GcpSettings, machine_type: str) -> str:
    """The configured boot disk type, else the one that the machine's family takes."""
    family = machine_type.rpartition("-")[0]
    return settings.disk_type or ("hyperdisk-balanced" if family in _HYPERDISK_ONLY else "pd-balanced")


def disk_gib(settings: GcpSettings, needed: int | None) -> int:
    """Boot disk size: what the work needs, else the configured size; never below the image's minimum."""
    return max(needed or settings.disk_gib or DEFAULT_DISK_GIB, IMAGE_MINIMUM_GIB)


def network_interface(settings: GcpSettings, region: str) -> dict[str, object]:
    """The one interface; without an access config it has no external address."""
    interface: dict[str, object] = {"network": _path(settings.network, "global/networks")}
    if settings.subnetwork:
        interface["subnetwork"] = _path(settings.subnetwork, f"regions/{region}/subnetworks")
    if settings.external_address:
        interface["accessConfigs"] = [{"name": "External NAT", "type": "ONE_TO_ONE_NAT"}]
    return interface


def _path(name: str, folder: str) -> str:
    return name if "/" in name else f"{folder}/{name}"
