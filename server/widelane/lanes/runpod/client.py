"""The calls of RunPod that the lane makes, whatever carries them.

Each is sent once and bounded by a time-out; a failure is a `CallError` with the answer, not judged yet.
"""

from __future__ import annotations

from typing import Protocol
from urllib.parse import urlsplit

from widelane.errors import LaneError
from widelane.lanes.runpod.answer import Answer
from widelane.lanes.runpod.pods import Offer, Pod, PodOrder

READ_SECONDS = 20.0
PUBLIC = "https://api.runpod.io"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class CallError(LaneError):
    """A call that failed; `answer` is what came back."""

    code = "call_failed"

    def __init__(self, failed: Answer) -> None:
        super().__init__("runpod", failed.text or failed.code)
        self.answer = failed


class Pods(Protocol):
    """An account's pods. Every method raises `CallError`, and `ConfigError` when a library is missing."""

    def connect(self) -> None:
        """Import what is needed; calls nothing."""
        ...

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        ...

    def create(self, order: PodOrder) -> str:
        """Send one create; the id of the pod."""
        ...

    def get(self, pod_id: str) -> Pod | None:
        """The pod of that id; None when the service knows none (of a young one it may not know yet)."""
        ...

    def listed(self) -> tuple[Pod, ...]:
        """Every pod of the account, stopped ones included."""
        ...

    def terminate(self, pod_id: str) -> bool:
        """Ask for deletion; False when the service knows no such pod."""
        ...

    def offer(self, gpu: str, gpus: int, cloud: str) -> Offer | None:
        """What the catalogue says of a GPU type at that width; None when it isn't in it."""
        ...


def is_loopback(endpoint: str | None) -> bool:
    """Whether an endpoint is on this host."""
    return endpoint is not None and urlsplit(endpoint).hostname in _LOOPBACK
