from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from widelane.runner.host.prepare import machine


class Metadata(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        values = {
            "name": "widelane-1",
            "zone": "projects/1/zones/us-central1-a",
            "machine-type": "projects/1/machineTypes/a2-ultragpu-4g",
        }
        value = values.get(self.path.removeprefix("/computeMetadata/v1/instance/"))
        known = value is not None and self.headers["Metadata-Flavor"] == "Google"
        self.send_response(200 if known else 403)
        self.end_headers()
        self.wfile.write((value or "").encode())

    def log_request(self, code: object = "-", size: object = "-") -> None: ...


@pytest.fixture
def metadata() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_compute_engine_host_knows_its_name_zone_and_machine_type(metadata: str) -> None:
    found = machine({"GCE_METADATA_HOST": metadata})
    assert found == {"name": "widelane-1", "zone": "us-central1-a", "machine_type": "a2-ultragpu-4g"}


def test_a_metadata_server_that_does_not_answer_is_no_trouble() -> None:
    assert machine({"GCE_METADATA_HOST": "127.0.0.1:1"}) == {}
