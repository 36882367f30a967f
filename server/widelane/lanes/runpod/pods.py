"""Pods and GPU types as both interfaces describe them, in one form. Pure; documents come in as decoded JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast
from urllib.parse import parse_qsl, urlencode

OURS = "widelane"
"""The label that every pod of ours carries, with value 1."""
ATTEMPT = "widelane-attempt"
LABELS_VARIABLE = "WIDELANE_POD_LABELS"
STORE_VARIABLE = "WIDELANE_POD_STORE"


class PodStatus(StrEnum):
    """The words of REST v2. Container and machine are one: EXITED is a stopped pod, TERMINATED a deleted one."""

    PROVISIONING = "PROVISIONING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    EXITED = "EXITED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"


_DESIRED = {
    "CREATED": PodStatus.PROVISIONING,
    "RESTARTING": PodStatus.STARTING,
    "PAUSED": PodStatus.EXITED,
    "DEAD": PodStatus.ERROR,
}


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod. Of its environment only what we put there is kept: the rest may hold somebody's secrets."""

    id: str
    name: str
    status: PodStatus
    gpu: str = ""
    """Id of its GPU type; "" when the service doesn't say."""
    gpus: int | None = None
    labels: dict[str, str] = field(default_factory=dict[str, str])
    store_url: str = ""
    created_at: str = ""
    place: str = ""
    """Its data centre."""
    interruptible: bool = False


@dataclass(frozen=True, slots=True)
class PodOrder:
    """One create. Texts hold no quote, backslash or control character: GraphQL gets them unescaped."""

    name: str
    image: str
    gpu: str
    gpus: int
    cloud: str
    disk_gib: int
    env: dict[str, str]
    args: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What the catalogue says of a GPU type at one width. None: it doesn't say."""

    most: int | None
    """The widest pod of this type."""
    in_stock: bool | None


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels as the text of one variable: pods have none of their own."""
    return urlencode(labels)


def pod_v2(document: Mapping[str, Any]) -> Pod:
    """A pod of REST v2."""
    gpu = _map(document.get("gpu"))
    return _pod(
        document,
        status=_status(document.get("status")),
        gpu=_text(gpu.get("id")),
        gpus=_count(gpu.get("count")),
        variables={key: _text(value) for key, value in _map(document.get("env")).items()},
        place=_text(document.get("dataCenterId")),
    )


def pod_graphql(document: Mapping[str, Any], gpu_ids: Mapping[str, str] | None = None) -> Pod:
    """A pod of GraphQL, whose environment is a list of NAME=VALUE. `gpu_ids` gives the id of a display name."""
    status = _status(document.get("desiredStatus"))
    if status is PodStatus.RUNNING and "runtime" in document and document["runtime"] is None:
        status = PodStatus.STARTING
    shown = _text(_map(document.get("machine")).get("gpuDisplayName"))
    listed = document.get("env")
    pairs = cast("list[object]", listed) if isinstance(listed, list) else []
    return _pod(
        document,
        status=status,
        gpu=(gpu_ids or {}).get(shown, ""),
        gpus=_count(document.get("gpuCount")),
        variables={name: value for name, _, value in (_text(pair).partition("=") for pair in pairs)},
        interruptible=document.get("podType") == "INTERRUPTABLE",
    )


def offer_v2(document: Mapping[str, Any], cloud: str) -> Offer:
    """What an entry of the catalogue says about that cloud."""
    stock = _text(document.get("availability"))
    return Offer(
        most=_count(_map(document.get("maxCount")).get(cloud.lower())), in_stock=stock != "NONE" if stock else None
    )


def offer_graphql(document: Mapping[str, Any]) -> Offer:
    """GraphQL gives the widest pod; that it gives no price proves nothing about stock."""
    return Offer(most=_count(document.get("maxGpuCount")), in_stock=None)


def _pod(document: Mapping[str, Any], variables: Mapping[str, str], **fields: Any) -> Pod:
    return Pod(
        id=_text(document.get("id")),
        name=_text(document.get("name")),
        labels=dict(parse_qsl(variables.get(LABELS_VARIABLE, ""))),
        store_url=variables.get(STORE_VARIABLE, ""),
        created_at=_text(document.get("createdAt")),
        **fields,
    )


def _status(value: object) -> PodStatus:
    """A status that isn't known yet counts as starting."""
    word = _text(value)
    if word in PodStatus.__members__:
        return PodStatus(word)
    return _DESIRED.get(word, PodStatus.STARTING)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _map(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
