"""What one create asks for. Pure: the same launch and deadline give the same order."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from widelane.config import RunpodSettings
from widelane.lanes.protocol import Launch
from widelane.lanes.runpod.client import PUBLIC
from widelane.lanes.runpod.pods import ATTEMPT, LABELS_VARIABLE, OURS, STORE_VARIABLE, PodOrder, labels_text
from widelane.lanes.runpod.startup import ARGS, Startup

IMAGE = "runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"
DISK_GIB = 100
"""Container disk where the plan needs no more."""

_GCE_IMAGE = re.compile(r"(^|/)projects/")
_NOT_IN_ORDERS = re.compile(r'["\\\x00-\x1f\x7f]')


def pod_order(launch: Launch, settings: RunpodSettings, startup: Startup, now: datetime) -> PodOrder:
    """The order of one create; its zone is a GPU type.

    The pod ends itself at `now` plus the launch's fence: the service has no run limit.
    """
    deadline = now + timedelta(seconds=launch.fence_seconds)
    return PodOrder(
        name=launch.name,
        image=_image(launch, settings),
        gpu=launch.zone,
        gpus=launch.rung.width,
        cloud=settings.cloud,
        disk_gib=max(launch.disk_gib or 0, DISK_GIB),
        env={
            LABELS_VARIABLE: labels_text(_labels(launch, deadline)),
            STORE_VARIABLE: launch.store_url,
            "WIDELANE_POD_SPEC": launch.spec_key,
            "WIDELANE_POD_RUNNER": launch.runner_sha256,
            "WIDELANE_POD_LEASE": launch.attempt_id,
            "WIDELANE_POD_GPUS": str(launch.rung.width),
            "WIDELANE_POD_DEADLINE": str(int(deadline.timestamp())),
            "WIDELANE_POD_API": (settings.endpoint or PUBLIC).rstrip("/"),
            "WIDELANE_POD_START": startup.script,
            "WIDELANE_POD_BOOTSTRAP": startup.bootstrap,
        },
        args=ARGS,
    )


def unfit_text(order: PodOrder) -> str:
    """The first text of the order that GraphQL can't be given unescaped; "" when all can."""
    texts = (order.name, order.image, order.gpu, order.args, *order.env.values())
    return next((text for text in texts if _NOT_IN_ORDERS.search(text)), "")


def body_v2(order: PodOrder) -> dict[str, object]:
    """The body of POST /v2/pods; the service refuses any field that it doesn't know."""
    return {
        "name": order.name,
        "image": order.image,
        "cloud": order.cloud,
        "gpu": {"id": order.gpu, "count": order.gpus},
        "disk": order.disk_gib,
        "env": order.env,
        "args": order.args,
    }


def _labels(launch: Launch, deadline: datetime) -> dict[str, str]:
    return {
        **launch.labels,
        OURS: "1",
        "widelane-run": launch.run_id,
        "widelane-dispatch": launch.dispatch_id,
        ATTEMPT: launch.attempt_id,
        "widelane-key": launch.dispatch_key,
        "widelane-gpu": launch.zone,
        "widelane-deadline": deadline.isoformat(timespec="seconds"),
    }


def _image(launch: Launch, settings: RunpodSettings) -> str:
    """The plan's image unless it is one of Compute Engine's, else the configured one, else a stock one."""
    if launch.image and not _GCE_IMAGE.search(launch.image):
        return launch.image
    return settings.image or IMAGE
