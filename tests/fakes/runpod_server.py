"""RunPod on loopback: REST v2 and the GraphQL of its package over one account, with pods that really run.

Faults are given by what is asked: `server.fail("create", "500_after")` makes the pod and answers with 500.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.fakes.graphql_text import Reader, SyntaxTroubleError
from tests.fakes.pod_processes import Container

KEY = "rpa_TESTKEY0000000000000000000000000000000000"
A100, PCIE, H100 = "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA H100 80GB HBM3"
_SHOWN = {A100: "A100 SXM", PCIE: "A100 PCIe", H100: "H100 SXM"}
_POD_FIELDS = {"name", "image", "cloud", "gpu", "disk", "env", "args"}
_NO_STOCK = (
    "There are no longer any instances available with the requested specifications. Please refresh and try again."
)
_WENT_WRONG = "Something went wrong. Please try again later or contact support."
_LOOK_SECONDS = 0.02


class RefusedError(Exception):
    """What the service answers instead: a status and, in GraphQL, a message under 200."""

    def __init__(self, status: int, detail: str, code: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.code, self.headers = status, detail, code, headers or {}


@dataclass
class FakePod:
    """One pod. `hidden`: reads don't show it yet."""

    id: str
    name: str
    image: str
    cloud: str
    gpu: str
    gpus: int
    env: dict[str, str]
    args: str
    disk: int
    key: str
    container: Container
    created_at: str
    status: str = "PROVISIONING"
    hidden: bool = False
    interruptible: bool = False


@dataclass
class Heard:
    """One request; `what` is create, get, list, terminate, offer or gpus."""

    what: str
    api: str
    key: str
    body: Any = None


@dataclass
class RunpodServer:
    """`stock[gpu][width]`: how many pods of that width are left; `most[gpu]` the widest. Absent: none."""

    folder: Path
    url: str = ""
    stock: dict[str, dict[int, int]] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=lambda: {A100: 8, PCIE: 8, H100: 8})
    pods: dict[str, FakePod] = field(default_factory=dict)
    heard: list[Heard] = field(default_factory=list)
    faults: dict[str, list[str]] = field(default_factory=dict)
    hide_new: bool = False
    hold_new: bool = False
    """New pods stay PROVISIONING."""
    gpus_given: int | None = None
    """As many GPUs as every pod gets, whatever it asked for."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    answer_late: threading.Event = field(default_factory=threading.Event)

    def fail(self, what: str, *faults: str) -> None:
        """The next requests of that kind fail so, one each."""
        self.faults.setdefault(what, []).extend(faults)

    def count(self, what: str) -> int:
        return sum(each.what == what for each in self.heard)

    def named(self, name: str) -> list[FakePod]:
        return [pod for pod in self.pods.values() if pod.name == name and pod.status != "TERMINATED"]

    def living(self) -> list[FakePod]:
        return [pod for pod in self.pods.values() if pod.status != "TERMINATED"]

    def reveal(self) -> None:
        """Show what was hidden."""
        for pod in self.pods.values():
            pod.hidden = False

    def plant(self, name: str, status: str = "RUNNING", **more: Any) -> FakePod:
        """A pod of somebody else's, without a process."""
        order = {"name": name, "image": "i", "cloud": "SECURE", "gpu": A100, "gpus": 1, "env": {}, "args": "sleep 1"}
        pod = self._record(order | more)
        pod.status = status
        return pod

    def stop(self, pod: FakePod) -> None:
        """As the console's button does: the container ends, the pod stays."""
        with self.lock:
            pod.status = "EXITED"
            pod.container.kill()

    def tick(self) -> None:
        """Start what is due, and start again what ended by itself."""
        with self.lock:
            for pod in list(self.pods.values()):
                due = pod.status == "PROVISIONING" and not self.hold_new
                if due or (pod.status == "RUNNING" and pod.container.starts and pod.container.ended()):
                    pod.container.kill()
                    pod.container.start()
                    pod.status = "RUNNING"

    def close(self) -> None:
        self.answer_late.set()
        with self.lock:
            for pod in self.pods.values():
                pod.status = "TERMINATED"
                pod.container.kill()

    # What both interfaces do

    def create(self, order: dict[str, Any]) -> FakePod:
        fault = self._fault("create")
        _refuse_before(fault)
        with self.lock:
            left = self.stock.get(order["gpu"], {})
            if order["gpus"] > self.most.get(order["gpu"], 0) or left.get(order["gpus"], 0) < 1:
                raise RefusedError(400, _NO_STOCK)
            left[order["gpus"]] -= 1
            pod = self._record(order)
            pod.hidden = self.hide_new
        if fault == "hang_after":
            self.answer_late.wait(30.0)
        if fault in ("drop_after", "hang_after"):
            raise ConnectionAbortedError
        if fault == "500_after":
            raise RefusedError(500, _WENT_WRONG, "INTERNAL_SERVER_ERROR")
        if fault == "page_after":
            raise RefusedError(502, "<html>Bad gateway</html>", "page")
        return pod

    def terminate(self, pod_id: str, key: str) -> None:
        _refuse_before(self._fault("terminate"))
        with self.lock:
            pod = self._seen(pod_id, key)
            pod.status = "TERMINATED"
            self.stock.setdefault(pod.gpu, {}).setdefault(pod.gpus, 0)
            pod.container.kill()

    def get(self, pod_id: str, key: str) -> FakePod:
        _refuse_before(self._fault("get"))
        return self._seen(pod_id, key)

    def listed(self) -> list[FakePod]:
        _refuse_before(self._fault("list"))
        return [pod for pod in self.living() if not pod.hidden]

    def offers(self) -> None:
        _refuse_before(self._fault("offer"))

    def allow(self, key: str, pod_id: str = "") -> None:
        """The account's key may do anything, a pod's only see and delete its own."""
        own = self.pods.get(pod_id)
        if key != KEY and (own is None or key != own.key):
            raise RefusedError(401, "missing bearer token")

    def _seen(self, pod_id: str, key: str) -> FakePod:
        pod = self.pods.get(pod_id)
        if pod is None or pod.status == "TERMINATED" or (pod.hidden and key == KEY):
            raise RefusedError(404, "pod not found")
        return pod

    def _record(self, order: dict[str, Any]) -> FakePod:
        pod_id, key = secrets.token_hex(7), f"pod_{secrets.token_hex(8)}"
        gpus = self.gpus_given if self.gpus_given is not None else order["gpus"]
        own = {"RUNPOD_POD_ID": pod_id, "RUNPOD_API_KEY": key, "RUNPOD_GPU_COUNT": str(gpus)}
        made = FakePod(
            id=pod_id,
            name=order["name"],
            image=order["image"],
            cloud=order["cloud"],
            gpu=order["gpu"],
            gpus=gpus,
            env=dict(order["env"]),
            args=order["args"],
            disk=order.get("disk", 50),
            key=key,
            container=Container(self.folder / pod_id, order["args"], {**order["env"], **own}, gpus),
            created_at=datetime.now(UTC).isoformat(),
        )
        self.pods[pod_id] = made
        return made

    def _fault(self, what: str) -> str:
        queue = self.faults.get(what)
        return queue.pop(0) if queue else ""


_REFUSALS: dict[str, tuple[int, str, str]] = {
    "401": (401, "missing bearer token", ""),
    "402": (402, "insufficient balance", ""),
    "403": (403, "access denied", "FORBIDDEN"),
    "404": (404, "pod not found", ""),
    "422": (422, "Request validation failed.", "BAD_USER_INPUT"),
    "429": (429, "rate limit exceeded for the minute window", ""),
    "500": (500, _WENT_WRONG, "INTERNAL_SERVER_ERROR"),
    "capacity": (400, _NO_STOCK, ""),
    "odd": (400, "a refusal of tomorrow", ""),
}
"""Faults that come before anything was done: status, text and, in GraphQL, code."""


def _refuse_before(fault: str) -> None:
    if fault == "drop":
        raise ConnectionAbortedError
    if fault in _REFUSALS:
        raise RefusedError(*_REFUSALS[fault], headers={"Retry-After": "1"} if fault == "429" else None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    runpod: RunpodServer

    def log_message(self, *_: Any) -> None:
        """Nothing: tests assert on `heard`."""

    def _serve(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.key = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        path = urlsplit(self.path)
        try:
            if path.path == "/graphql":
                self._send(200, self._graphql(json.loads(raw)["query"]))
            else:
                query = {key: values[0] for key, values in parse_qs(path.query).items()}
                self._send(*self._v2(unquote(path.path), query, json.loads(raw) if raw else None))
        except ConnectionAbortedError:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        except RefusedError as refused:
            self._refuse(refused, graphql=path.path == "/graphql")

    do_GET = do_POST = do_DELETE = _serve

    def _refuse(self, refused: RefusedError, *, graphql: bool) -> None:
        """REST says it by status. GraphQL has statuses for what happens before a query is run, and 200 for the rest."""
        if refused.code == "page":
            self._send(refused.status, refused.detail, refused.headers)
        elif not graphql:
            titled = {"title": "Refused", "status": refused.status, "detail": refused.detail}
            self._send(refused.status, titled, refused.headers)
        elif refused.status in (401, 429):
            self._send(refused.status, {"message": refused.detail}, refused.headers)
        else:
            extensions = {"code": refused.code} if refused.code else {}
            error = {"message": refused.detail, "extensions": extensions}
            self._send(400 if refused.code == "GRAPHQL_PARSE_FAILED" else 200, {"errors": [error], "data": None})

    def _send(self, status: int, body: Any = None, headers: dict[str, str] | None = None) -> None:
        payload = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(payload)

    def _hear(self, what: str, api: str, body: Any = None, pod_id: str = "") -> None:
        self.runpod.heard.append(Heard(what, api, self.key, body))
        self.runpod.allow(self.key, pod_id)

    # REST v2

    def _v2(self, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path == "/v2/catalog/gpus":
            return 200, {"gpus": self._catalog(query)}
        if path == "/v2/pods" and self.command == "POST":
            self._hear("create", "v2", body)
            return 201, _shown_v2(self.runpod.create(_order_v2(body)))
        if path == "/v2/pods":
            self._hear("list", "v2")
            return 200, {"pods": [_shown_v2(pod) for pod in self.runpod.listed()]}
        pod_id = path.removeprefix("/v2/pods/")
        if self.command == "DELETE":
            self._hear("terminate", "v2", pod_id=pod_id)
            self.runpod.terminate(pod_id, self.key)
            return 204, None
        self._hear("get", "v2", pod_id=pod_id)
        return 200, _shown_v2(self.runpod.get(pod_id, self.key))

    def _catalog(self, query: dict[str, str]) -> list[dict[str, Any]]:
        self._hear("offer", "v2", query)
        self.runpod.offers()
        count = int(query.get("count", 1))
        assert query.get("product") == "POD" or "include" not in query
        return [
            {
                "id": gpu,
                "name": _SHOWN[gpu],
                "maxCount": {"secure": most, "community": min(most, 4)},
                "price": {"secure": 1.79, "community": 1.39},
                "availability": "LOW" if self.runpod.stock.get(gpu, {}).get(count) else "NONE",
            }
            for gpu, most in self.runpod.most.items()
        ]

    # GraphQL

    def _graphql(self, text: str) -> dict[str, Any]:
        try:
            asked = Reader(text)
        except SyntaxTroubleError as trouble:
            raise RefusedError(400, str(trouble), "GRAPHQL_PARSE_FAILED") from trouble
        given = asked.arguments.get("input", {})
        match asked.name:
            case "podFindAndDeployOnDemand":
                self._hear("create", "graphql", given)
                return {"data": {asked.name: {"id": self.runpod.create(_order_graphql(given)).id}}}
            case "podTerminate":
                self._hear("terminate", "graphql", pod_id=given["podId"])
                self.runpod.terminate(given["podId"], self.key)
                return {"data": {asked.name: None}}
            case "pod":
                self._hear("get", "graphql", pod_id=given["podId"])
                return {"data": {"pod": self._pod_or_none(given["podId"])}}
            case "myself":
                self._hear("list", "graphql")
                return {"data": {"myself": {"pods": [_shown_graphql(pod) for pod in self.runpod.listed()]}}}
            case "gpuTypes":
                return {"data": {"gpuTypes": self._gpu_types(given)}}
        raise RefusedError(400, f"Cannot query field {asked.name}", "GRAPHQL_VALIDATION_FAILED")

    def _pod_or_none(self, pod_id: str) -> dict[str, Any] | None:
        try:
            return _shown_graphql(self.runpod.get(pod_id, self.key))
        except RefusedError as refused:
            if refused.status == 404:
                return None
            raise

    def _gpu_types(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        self._hear("offer" if given else "gpus", "graphql", given)
        if given:
            self.runpod.offers()
        return [
            {"id": gpu, "displayName": _SHOWN[gpu], "maxGpuCount": most, "secureCloud": True, "communityCloud": True}
            for gpu, most in self.runpod.most.items()
            if given.get("id", gpu) == gpu
        ]


def _order_v2(body: dict[str, Any]) -> dict[str, Any]:
    unknown = set(body) - _POD_FIELDS
    if unknown:
        raise RefusedError(422, f"additional properties {sorted(unknown)} not allowed")
    gpu = body["gpu"]
    return {**{key: body[key] for key in body if key != "gpu"}, "gpu": gpu["id"], "gpus": gpu["count"]}


def _order_graphql(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": given["name"],
        "image": given["imageName"],
        "cloud": given["cloudType"],
        "gpu": given["gpuTypeId"],
        "gpus": given["gpuCount"],
        "disk": given["containerDiskInGb"],
        "args": given["dockerArgs"],
        "env": {entry["key"]: entry["value"] for entry in given["env"]},
    }


def _shown_v2(pod: FakePod) -> dict[str, Any]:
    return {
        "id": pod.id,
        "name": pod.name,
        "status": pod.status,
        "actions": ["stop", "terminate"],
        "image": pod.image,
        "args": pod.args,
        "disk": pod.disk,
        "gpu": {"id": pod.gpu, "count": pod.gpus},
        "env": pod.env,
        "cloud": pod.cloud,
        "dataCenterId": "US-TX-3",
        "createdAt": pod.created_at,
        "cost": 1.79 * pod.gpus,
    }


def _shown_graphql(pod: FakePod) -> dict[str, Any]:
    running = pod.status == "RUNNING"
    desired = pod.status if pod.status in ("EXITED", "TERMINATED") else "DEAD" if pod.status == "ERROR" else "RUNNING"
    return {
        "id": pod.id,
        "name": pod.name,
        "desiredStatus": desired,
        "env": [f"{key}={value}" for key, value in pod.env.items()],
        "gpuCount": pod.gpus,
        "podType": "INTERRUPTABLE" if pod.interruptible else "RESERVED",
        "runtime": {"ports": []} if running else None,
        "machine": {"gpuDisplayName": _SHOWN[pod.gpu]},
    }


@contextmanager
def runpod_server(folder: Path) -> Iterator[RunpodServer]:
    """A server on loopback for as long as the block; its pods end with it."""
    made = RunpodServer(folder)
    handler = type("Handler", (_Handler,), {"runpod": made})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    over = threading.Event()

    def live() -> None:
        while not over.wait(_LOOK_SECONDS):
            made.tick()

    threads = [
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True),
        threading.Thread(target=live, daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        yield made
    finally:
        over.set()
        made.answer_late.set()
        server.shutdown()
        server.server_close()
        for thread in threads:
            thread.join()
        made.close()
