"""A proxy before a service of one's own, that sees every request and breaks those that a test names."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Seen:
    """One request that came."""

    method: str
    path: str
    token: str
    """Of the Authorization header; "" without one."""
    agent: str
    span: str
    """Content-Range."""


@dataclass
class Gate:
    """`url` takes the place of the service's. `breaks` says what is done to the next requests of a method, in order:

    an int is answered with that status and not passed on, `before` and `after` close the line before or after the
    request was carried out, `ok` does nothing to it.
    """

    url: str = ""
    seen: list[Seen] = field(default_factory=list[Seen])
    breaks: dict[str, list[int | str]] = field(default_factory=dict[str, list[int | str]])
    parts: bool = False
    """Keep uploads in parts itself, as the service documents them, and pass them on whole: the emulator takes the
    question how far an upload is for its end."""
    uploads: dict[str, tuple[str, bytes, bytes]] = field(default_factory=dict[str, tuple[str, bytes, bytes]])
    """Under way: (path, description, what came so far)."""

    def holds(self, path: str) -> bool:
        """Whether the gate itself keeps the upload that this request belongs to."""
        return self.parts and ("uploadType=resumable" in path or path in self.uploads)


@contextmanager
def gate_before(service: str) -> Iterator[Gate]:
    """A gate for the length of a `with`."""
    gate = Gate()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(gate, service))
    server.daemon_threads = True
    gate.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield gate
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(gate: Gate, service: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
            assert scheme in ("", "Bearer")
            agent, span = self.headers.get("User-Agent") or "", self.headers.get("Content-Range") or ""
            gate.seen.append(Seen(self.command, self.path, token, agent, span))
            queue = gate.breaks.get(self.command)
            broken = queue.pop(0) if queue else "ok"
            if isinstance(broken, int):
                self._answer(broken, b"", {})
                return
            if broken != "before":
                passed = (self.command, self.path, dict(self.headers), body)
                status, said, headers = (
                    _part(gate, service, *passed) if gate.holds(self.path) else _forward(service, *passed)
                )
                if broken == "ok":
                    self._answer(status, said.replace(service.encode(), gate.url.encode()), headers)
                    return
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def _answer(self, status: int, said: bytes, headers: dict[str, str]) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "date"):
                    self.send_header(name, value.replace(service, gate.url))
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler._pass)
    return Handler


def _part(
    gate: Gate, service: str, _method: str, path: str, headers: dict[str, str], body: bytes
) -> tuple[int, bytes, dict[str, str]]:
    """Begin an upload, or take a part of one."""
    if path not in gate.uploads:
        session = f"/session/{len(gate.uploads)}"
        gate.uploads[session] = (path, body, b"")
        return 200, b"", {"Location": gate.url + session}
    begun, meta, kept = gate.uploads[path]
    given, _, total = headers["Content-Range"].removeprefix("bytes ").partition("/")
    if given != "*":
        start = int(given.partition("-")[0])
        assert start <= len(kept), "a part beyond what was sent"
        kept = kept[:start] + body
        gate.uploads[path] = (begun, meta, kept)
    if len(kept) < int(total):
        return 308, b"", {"Range": f"bytes=0-{len(kept) - 1}"} if kept else {}
    head = b"--E\r\nContent-Type: application/json\r\n\r\n" + meta
    whole = head + b"\r\n--E\r\nContent-Type: application/octet-stream\r\n\r\n" + kept + b"\r\n--E--\r\n"
    kind = {"Content-Type": "multipart/related; boundary=E"}
    return _forward(service, "POST", begun.replace("=resumable", "=multipart"), kind, whole)


def _forward(
    service: str, method: str, path: str, headers: dict[str, str], body: bytes
) -> tuple[int, bytes, dict[str, str]]:
    line = http.client.HTTPConnection(urlsplit(service).netloc, timeout=30)
    try:
        line.request(method, path, body, {**headers, "Host": urlsplit(service).netloc, "Connection": "close"})
        answer = line.getresponse()
        return answer.status, answer.read(), dict(answer.getheaders())
    finally:
        line.close()
