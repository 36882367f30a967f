"""What the clients of a bucket make of lost lines, refusals and old tokens."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.gate import Gate, gate_before
from tests.fakes.storage import storage_service
from widelane.errors import StoreError
from widelane.runner.host import bucket as far
from widelane.runner.host.bucket import BucketStore, Tokens
from widelane.store import Store, open_store


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with storage_service("things") as url:
        yield url


@pytest.fixture
def gate(service: str) -> Iterator[Gate]:
    with gate_before(service) as gate:
        yield gate


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def hosts(gate: Gate, tmp_path: Path, pauses: list[float]) -> Store:
    """The host's client, behind the gate."""
    return Store(BucketStore(f"gs://things/{tmp_path.name}?endpoint={gate.url}", pause=pauses.append))


@pytest.fixture
def ours(gate: Gate, tmp_path: Path) -> Store:
    return open_store(f"gs://things/{tmp_path.name}?endpoint={gate.url}")


@pytest.mark.parametrize("broken", ["before", "after", 503, 429])
def test_a_first_write_whose_answer_was_lost_counts_once_and_knows_it(hosts: Store, gate: Gate, broken: Any) -> None:
    gate.breaks["POST"] = [broken]
    assert hosts.put_if_absent("records/x", b"mine")
    assert not hosts.put_if_absent("records/x", b"other")
    assert hosts.get("records/x") == b"mine"


def test_a_first_write_that_was_lost_to_another_in_between_knows_it(hosts: Store, ours: Store, gate: Gate) -> None:
    ours.put_if_absent("records/x", b"theirs")
    gate.breaks["POST"] = ["before"]
    assert not hosts.put_if_absent("records/x", b"mine")
    assert hosts.get("records/x") == b"theirs"


def test_our_own_first_write_whose_answer_was_lost_is_looked_for(ours: Store, gate: Gate) -> None:
    gate.breaks["POST"] = ["after"]
    assert ours.put_if_absent("records/x", b"mine")
    gate.breaks["POST"] = ["after"]
    assert not ours.put_if_absent("records/x", b"other")
    gate.breaks["POST"] = ["before"]
    with pytest.raises(StoreError):
        ours.put_if_absent("records/y", b"mine")
    assert not ours.exists("records/y")


@pytest.mark.parametrize("broken", ["before", "after", 500])
def test_a_part_that_broke_goes_on_from_where_the_service_has_it(
    hosts: Store, gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: Any
) -> None:
    monkeypatch.setattr(far, "PART", 256 << 10)
    source = tmp_path / "large"
    source.write_bytes(b"".join(bytes([n % 251]) * 1021 for n in range(1000)))
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    gate.parts = True
    gate.breaks["PUT"] = ["ok", broken]
    hosts.put_file("blobs/large", source, sha256)
    hosts.get_to("blobs/large", tmp_path / "back", sha256)
    spans = [seen.span for seen in gate.seen if seen.method == "PUT"]
    assert spans[0].startswith("bytes 0-262143/")
    assert spans[2].startswith("bytes */")


def test_reads_are_tried_again_and_given_up_in_the_end(hosts: Store, gate: Gate, pauses: list[float]) -> None:
    hosts.put("x", b"1")
    gate.breaks["GET"] = [503, "before"]
    assert hosts.get("x") == b"1"
    assert len(pauses) == 2
    gate.breaks["GET"] = [503] * 9
    with pytest.raises(StoreError, match="503"):
        hosts.get("x")
    assert len(gate.breaks["GET"]) == 5


@pytest.mark.parametrize("status", [403, 400])
def test_a_refusal_is_not_repeated(hosts: Store, gate: Gate, status: int) -> None:
    gate.breaks["POST"] = [status, status]
    with pytest.raises(StoreError, match=str(status)):
        hosts.put("x", b"")
    assert gate.breaks["POST"] == [status]


@pytest.fixture
def metadata() -> Iterator[tuple[str, list[str]]]:
    """A metadata server that gives token-1, token-2 and so on, each good for an hour; and who asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.path} {self.headers.get('Metadata-Flavor')}")
            self.send_response(200)
            self.end_headers()
            told = {"access_token": f"token-{len(asked)}", "expires_in": 3600, "token_type": "Bearer"}
            self.wfile.write(json.dumps(told).encode())

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_host_shows_the_token_of_its_machine_and_takes_a_new_one_when_it_is_refused(
    gate: Gate, metadata: tuple[str, list[str]], tmp_path: Path
) -> None:
    host, asked = metadata
    url = f"gs://things/{tmp_path.name}?endpoint={gate.url}"
    store = BucketStore(url, Tokens(host), pause=lambda _: None)
    store.put("a", b"1")
    store.put("b", b"2")
    assert asked == ["/computeMetadata/v1/instance/service-accounts/default/token Google"]
    gate.breaks["GET"] = [401]
    assert store.get("a") == b"1"
    assert [seen.token for seen in gate.seen] == ["token-1", "token-1", "token-1", "token-2"]


def test_off_google_cloud_the_login_of_gcloud_is_used_but_not_shown_to_an_emulator(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "gcloud"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$*" = "auth application-default print-access-token" ] && echo from-gcloud\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    BucketStore(f"gs://things/{tmp_path.name}?endpoint={gate.url}").put("a", b"1")
    assert [seen.token for seen in gate.seen] == [""]
    assert Tokens().get() == "from-gcloud"


def test_the_credentials_that_the_client_library_finds_are_used_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "google" / "auth" / "transport"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "requests.py").write_text("class Request: ...\n")
    (package.parent.parent / "__init__.py").write_text("")
    (package.parent / "__init__.py").write_text(
        "class Found:\n    def refresh(self, _): self.token = 'from-library'\n"
        "def default(scopes): return Found(), None\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert Tokens().get() == "from-library"


def test_a_host_without_any_credentials_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StoreError, match="no Google Cloud credentials"):
        Store(BucketStore("gs://things", pause=lambda _: None)).get("x")
