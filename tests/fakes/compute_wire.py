"""A Compute Engine that says what the test tells it to: raw answers, dropped connections, broken JSON."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

BASE = "/compute/v1/projects/test-project"


@dataclass(frozen=True)
class Said:
    """One scripted answer. `drop`: the connection is closed before anything is sent."""

    status: int = 200
    body: Any = None
    drop: bool = False

    def payload(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Heard:
    method: str
    path: str
    query: dict[str, str]
    body: Any


@dataclass
class Wire:
    """`answers[method, path]` are given in order; the last one stays. What isn't scripted is a 404 of that resource."""

    url: str = ""
    answers: dict[tuple[str, str], list[Said]] = field(default_factory=dict)
    heard: list[Heard] = field(default_factory=list)

    def say(self, method: str, path: str, *answers: Said) -> None:
        self.answers[method, BASE + path] = list(answers)

    def count(self, method: str, path: str) -> int:
        return sum(entry.method == method and entry.path == BASE + path for entry in self.heard)

    def next_answer(self, method: str, path: str) -> Said:
        queue = self.answers.get((method, path))
        if not queue:
            text = f"The resource '{path.removeprefix('/compute/v1/')}' was not found"
            return Said(404, {"error": {"code": 404, "message": text, "errors": [{"reason": "notFound"}]}})
        return queue.pop(0) if len(queue) > 1 else queue[0]


@contextmanager
def compute_wire() -> Iterator[Wire]:
    """A server on loopback for as long as the block."""
    wire = Wire()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            query = {key: values[0] for key, values in parse_qs(parts.query).items()}
            wire.heard.append(Heard(self.command, parts.path, query, json.loads(raw) if raw else None))
            said = wire.next_answer(self.command, parts.path)
            if said.drop:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            payload = said.payload()
            self.send_response(said.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_DELETE = _serve

        def log_message(self, *_: Any) -> None:
            """Nothing: the test asserts on `heard`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    wire.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
