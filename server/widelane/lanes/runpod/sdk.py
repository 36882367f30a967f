"""The `runpod` package, imported with the first call, with what it loses put back.

The package speaks GraphQL through one function, which drops HTTP status and headers, takes the key from a module
variable and the address from the environment. `_Carrier` stands in for `requests` in that one module: it gives each
call our key and address and keeps the answer.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from widelane.errors import ConfigError
from widelane.lanes.runpod import answer
from widelane.lanes.runpod.answer import Answer
from widelane.lanes.runpod.client import READ_SECONDS, CallError
from widelane.lanes.runpod.pods import Offer, Pod, PodOrder, offer_graphql, pod_graphql

Document = dict[str, Any]

_NO_KEY = "given-with-each-call"
_UNKNOWN_GPU = "No GPU found"
_import_lock = threading.Lock()


@dataclass(slots=True)
class _Call:
    """One call of the package: where it goes, and what came back last."""

    url: str
    key: str
    seconds: float
    status: int | None = None
    text: str = ""
    headers: dict[str, str] = field(default_factory=dict[str, str])


class _Carrier:
    """`requests`, as far as the package uses it. Calls that aren't ours pass through unchanged."""

    def __init__(self, requests: Any) -> None:
        self._requests = requests
        self._thread = threading.local()

    @contextmanager
    def carrying(self, call: _Call) -> Generator[None]:
        """Calls of this thread are this one."""
        self._thread.call = call
        try:
            yield
        finally:
            self._thread.call = None

    def post(self, url: str, *, headers: Mapping[str, str], data: str, timeout: float) -> Any:
        """One POST; the answer is kept."""
        call: _Call | None = getattr(self._thread, "call", None)
        if call is None:
            return self._requests.post(url, headers=headers, data=data, timeout=timeout)
        call.status = None
        found = self._requests.post(
            call.url,
            headers={**headers, "Authorization": f"Bearer {call.key}"},
            data=data,
            timeout=call.seconds,
            allow_redirects=False,
        )
        call.status, call.text, call.headers = found.status_code, found.text, dict(found.headers)
        return found


@dataclass(frozen=True, slots=True)
class _Package:
    """The library isn't typed; it ends here."""

    runpod: Any
    carrier: _Carrier
    failures: tuple[type[Exception], ...]


class Sdk:
    """One account by the package. Shared by all threads; the package is imported when first used."""

    def __init__(self, endpoint: str, key: str, write_seconds: float) -> None:
        """`endpoint` is the host without /graphql; `write_seconds` bounds a create."""
        self._url = f"{endpoint.rstrip('/')}/graphql"
        self._key = key
        self._write_seconds = write_seconds
        self._gpu_ids: dict[str, str] | None = None

    def connect(self) -> None:
        """Import the package."""
        _package()

    def close(self) -> None:
        """The package keeps no connection."""

    def create(self, order: PodOrder) -> str:
        """podFindAndDeployOnDemand, once, after a look-up of the GPU type; the id of the pod.

        An answer with errors that names a pod all the same has made it.
        """
        call = _Call(self._url, self._key, self._write_seconds)
        try:
            made = self._run(
                call,
                _package().runpod.create_pod,
                name=order.name,
                image_name=order.image,
                gpu_type_id=order.gpu,
                cloud_type=order.cloud,
                support_public_ip=False,
                start_ssh=False,
                gpu_count=order.gpus,
                container_disk_in_gb=order.disk_gib,
                docker_args=order.args,
                env=order.env,
            )
        except CallError:
            made = _made(call)
            if not made:
                raise
        pod_id = made.get("id") if made else None
        if not isinstance(pod_id, str):
            raise CallError(_answer(call))
        return pod_id

    def get(self, pod_id: str) -> Pod | None:
        """The pod; None when the answer has none."""
        found = self._read("get_pod", pod_id)
        return None if found is None else self._pod(found)

    def listed(self) -> tuple[Pod, ...]:
        """Every pod of the account."""
        return tuple(self._pod(found) for found in self._read("get_pods") or ())

    def terminate(self, pod_id: str) -> bool:
        """podTerminate. It answers an unknown pod with an error of no particular kind: a look tells."""
        try:
            self._read("terminate_pod", pod_id)
        except CallError as error:
            if error.answer.code != "GRAPHQL_ERROR" or self.get(pod_id) is not None:
                raise
            return False
        return True

    def offer(self, gpu: str, gpus: int, cloud: str) -> Offer | None:
        """The widest pod of the type; GraphQL says nothing of stock that could be relied on."""
        try:
            found = self._read("get_gpu", gpu, gpus)
        except CallError as error:
            if _UNKNOWN_GPU in error.answer.text:
                return None
            raise
        sold = found.get(f"{cloud.lower()}Cloud")
        return None if sold is False else offer_graphql(found)

    def _pod(self, document: Document) -> Pod:
        return pod_graphql(document, self._known_gpus())

    def _known_gpus(self) -> dict[str, str]:
        """Ids of GPU types by the name that pods show; read once. A name that two types share tells nothing."""
        if self._gpu_ids is None:
            listed: list[Document] = self._read("get_gpus") or []
            names = [str(entry.get("displayName")) for entry in listed]
            self._gpu_ids = {
                name: str(entry.get("id")) for name, entry in zip(names, listed, strict=True) if names.count(name) == 1
            }
        return self._gpu_ids

    def _read(self, function: str, *arguments: object) -> Any:
        return self._run(_Call(self._url, self._key, READ_SECONDS), getattr(_package().runpod, function), *arguments)

    def _run(self, call: _Call, function: Callable[..., Any], *arguments: object, **named: object) -> Any:
        """Call a function of the package. Raises CallError with the answer as it was on the wire."""
        package = _package()
        try:
            with package.carrier.carrying(call):
                return function(*arguments, **named)
        except package.failures as error:
            raise CallError(_answer(call, error)) from error


def _answer(call: _Call, error: Exception | None = None) -> Answer:
    """What a failed call is to be judged by: the status and body where there are any."""
    said = "" if error is None else str(error)
    if call.status is None or _UNKNOWN_GPU in said:
        return answer.raised(type(error).__name__, said)
    return answer.graphql(call.status, call.text, call.headers)


def _made(call: _Call) -> Document | None:
    """The pod that an answer with errors made."""
    made = answer.inside(answer.decode(call.text), "data", "podFindAndDeployOnDemand")
    return dict(made) if made.get("id") else None


_loaded: _Package | None = None


def _package() -> _Package:
    global _loaded
    with _import_lock:
        if _loaded is None:
            _loaded = _load()
        return _loaded


def _load() -> _Package:
    """Import the package, and take back the handler that its import puts on the root logger."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        runpod, requests = import_module("runpod"), import_module("requests")
        graphql, error = import_module("runpod.api.graphql"), import_module("runpod.error")
    except ImportError as missing:
        raise ConfigError(
            "the transport sdk needs the runpod package", hint="pip install 'widelane[runpod]'"
        ) from missing
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    carrier = _Carrier(requests)
    vars(graphql)["requests"] = carrier
    vars(runpod)["api_key"] = vars(runpod)["api_key"] or _NO_KEY
    lost = (ValueError, KeyError, TypeError, IndexError)
    return _Package(runpod, carrier, (error.RunPodError, requests.RequestException, *lost))
