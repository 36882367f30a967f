"""REST v2 over httpx2, which is imported with the first call. The key goes into one header and nowhere else."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from widelane.errors import ConfigError
from widelane.lanes.runpod import answer
from widelane.lanes.runpod.bodies import body_v2
from widelane.lanes.runpod.client import READ_SECONDS, CallError, is_loopback
from widelane.lanes.runpod.pods import Offer, Pod, PodOrder, offer_v2, pod_v2

Document = dict[str, Any]


class Rest2:
    """One account by REST v2. Shared by all threads; connects when first used."""

    def __init__(self, endpoint: str, key: str, write_seconds: float) -> None:
        """`endpoint` is the host without /v2; `write_seconds` bounds a create and a deletion."""
        self._base = f"{endpoint.rstrip('/')}/v2"
        self._key = key
        self._write_seconds = write_seconds
        self._lock = threading.Lock()
        self._client: Any = None

    def connect(self) -> None:
        """Import the library."""
        self._connected()

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def create(self, order: PodOrder) -> str:
        """POST /pods, once; the id of the pod."""
        document = self._call("POST", "/pods", self._write_seconds, json=body_v2(order))
        made = document.get("id")
        if not isinstance(made, str) or not made:
            raise CallError(answer.v2(200, document))
        return made

    def get(self, pod_id: str) -> Pod | None:
        """GET /pods/ID; None on 404."""
        try:
            return pod_v2(self._call("GET", f"/pods/{quote(pod_id, safe='')}", READ_SECONDS))
        except CallError as error:
            _only_missing(error)
            return None

    def listed(self) -> tuple[Pod, ...]:
        """GET /pods."""
        document = self._call("GET", "/pods", READ_SECONDS)
        if not isinstance(document.get("pods"), list):
            raise CallError(answer.v2(200, "a list without pods"))
        pods: list[Document] = document["pods"]
        return tuple(map(pod_v2, pods))

    def terminate(self, pod_id: str) -> bool:
        """DELETE /pods/ID; False on 404."""
        try:
            self._call("DELETE", f"/pods/{quote(pod_id, safe='')}", self._write_seconds)
        except CallError as error:
            _only_missing(error)
            return False
        return True

    def offer(self, gpu: str, gpus: int, cloud: str) -> Offer | None:
        """The entry of a GPU type in the catalogue, read for that width: stock at width 1 says nothing of 8."""
        params = {"include": "AVAILABILITY", "product": "POD", "count": str(gpus), "cloud": cloud}
        entries = self._catalog(params)
        return next((offer_v2(entry, cloud) for entry in entries if entry.get("id") == gpu), None)

    def _catalog(self, params: dict[str, str]) -> list[Document]:
        document = self._call("GET", "/catalog/gpus", READ_SECONDS, params=params)
        if not isinstance(document.get("gpus"), list):
            raise CallError(answer.v2(200, "a catalogue without gpus"))
        entries: list[Document] = document["gpus"]
        return entries

    def _call(self, method: str, path: str, seconds: float, **request: Any) -> Document:
        """One request; the decoded answer ({} for 204)."""
        client = self._connected()
        from httpx2 import HTTPError, InvalidURL  # noqa: PLC0415 - loaded with the client

        headers = {"Authorization": f"Bearer {self._key}"}
        try:
            found = client.request(method, self._base + path, headers=headers, timeout=seconds, **request)
            text, status = found.text, found.status_code
        except (HTTPError, InvalidURL) as error:
            raise CallError(answer.raised(type(error).__name__, str(error))) from error
        if status >= 300:
            raise CallError(answer.v2(status, text, _headers(found.headers)))
        return _document(status, text)

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = _open(trust_env=not is_loopback(self._base))
                weakref.finalize(self, self._client.close)
            return self._client


def _open(*, trust_env: bool) -> Any:
    try:
        import httpx2  # noqa: PLC0415 - only a call may pay for the import
    except ImportError as missing:
        raise ConfigError("the runpod lane needs httpx2", hint="pip install 'widelane'") from missing
    # Redirects are not followed: the key would go along.
    return httpx2.Client(follow_redirects=False, trust_env=trust_env)


def _headers(found: Mapping[str, str]) -> dict[str, str]:
    return dict(found.items())


def _document(status: int, text: str) -> Document:
    if not text.strip():
        return {}
    decoded = answer.decode(text)
    if decoded is None:
        raise CallError(answer.v2(status, text))
    return dict(decoded)


def _only_missing(error: CallError) -> None:
    if error.answer.status != 404:
        raise error
