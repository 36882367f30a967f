"""A bucket as a store: the host's client and ours against one service, each held to the same words."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.storage import storage_service
from widelane.errors import ConfigError, NotFoundError, StoreError
from widelane.runner.host import bucket as far
from widelane.runner.host import store as host
from widelane.store import Store, open_store
from widelane.store.bucket import CloudBucket

Open = Callable[[str], Store]


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    with storage_service("things") as url:
        yield url


def _ours(url: str) -> Store:
    return open_store(url)


def _hosts(url: str) -> Store:
    return Store(host.open_store(url))


@pytest.fixture(params=[_ours, _hosts], ids=["ours", "hosts"])
def opened(request: pytest.FixtureRequest) -> Open:
    chosen: Open = request.param
    return chosen


@pytest.fixture
def url(service: str, tmp_path: Path) -> str:
    """A part of the bucket that no other test has."""
    return f"gs://things/{tmp_path.name}/a%20b?endpoint={service}"


@pytest.fixture
def store(opened: Open, url: str) -> Store:
    return opened(url)


def test_a_value_is_read_back_and_overwritten_and_listed_below_its_prefix(store: Store, url: str) -> None:
    store.put("a/b%25 c", b"1")
    store.put("a/b%25 c", b"2", durable=False)
    store.put("z", b"")
    assert store.get("a/b%25 c") == b"2"
    assert (store.exists("a/b%25 c"), store.exists("a")) == (True, False)
    assert (store.list("a/"), store.list(""), store.list("none")) == (["a/b%25 c"], ["a/b%25 c", "z"], [])
    assert store.url == url
    assert store.folder is None
    for other in (_ours, _hosts):
        assert other(store.url).get("a/b%25 c") == b"2"


def test_the_first_writer_wins(store: Store) -> None:
    assert store.put_if_absent("records/x.json", b"first")
    assert not store.put_if_absent("records/x.json", b"second")
    assert store.get("records/x.json") == b"first"


def test_of_many_writers_of_both_kinds_exactly_one_wins_each_key(url: str) -> None:
    wins: list[tuple[int, int]] = []
    start = threading.Barrier(6)

    def write(number: int) -> None:
        store = (_ours if number % 2 else _hosts)(url)
        for key in range(10):
            start.wait()
            if store.put_if_absent(f"records/{key}", b"%d" % number):
                wins.append((key, number))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(key for key, _ in wins) == list(range(10))
    for key, number in wins:
        assert _hosts(url).get(f"records/{key}") == b"%d" % number


def test_files_go_in_and_come_out_with_their_digest_checked(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "f"
    source.write_bytes(b"data")
    right = hashlib.sha256(b"data").hexdigest()
    store.put_file("blobs/x", source, right)
    store.put_file("blobs/unchecked", source)
    store.get_to("blobs/x", tmp_path / "new" / "g", right)
    assert (tmp_path / "new" / "g").read_bytes() == b"data"
    with pytest.raises(StoreError, match="changed before"):
        store.put_file("blobs/y", source, "0" * 64)
    with pytest.raises(StoreError, match="content has sha256"):
        store.get_to("blobs/x", tmp_path / "new" / "h", "0" * 64)
    assert store.list("") == ["blobs/unchecked", "blobs/x"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["g"]


def test_a_large_file_goes_in_parts(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "PART", 256 << 10)
    source = tmp_path / "large"
    source.write_bytes(b"".join(bytes([n % 251]) * 1021 for n in range(1000)))
    sha256 = hashlib.sha256(source.read_bytes()).hexdigest()
    store.put_file("blobs/large", source, sha256)
    store.get_to("blobs/large", tmp_path / "back", sha256)
    assert (tmp_path / "back").stat().st_size == source.stat().st_size


def test_a_key_that_is_not_there_is_not_found(store: Store, tmp_path: Path) -> None:
    store.put("a", b"")
    for key in ("b", "a/b", "c/d"):
        with pytest.raises(NotFoundError):
            store.get(key)
        with pytest.raises(NotFoundError):
            store.get_to(key, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["", "/a", "a//b", "../a", "a/..", "a/./b", "a\0b", "a/.tmp-1"])
def test_a_key_cannot_leave_its_part_of_the_bucket(store: Store, key: str) -> None:
    for act in (lambda: store.put(key, b""), lambda: store.get(key), lambda: store.exists(key)):
        with pytest.raises(StoreError):
            act()


@pytest.mark.parametrize(
    "bad",
    [
        "gs://",
        "gs:///prefix",
        "gs://UPPER/x",
        "gs://b",
        "gs://things/../x",
        "gs://things/x?y=z",
        "gs://things/x?endpoint=https://elsewhere.example",
        "gs://things/x#y",
    ],
)
def test_a_url_that_is_no_bucket_is_a_configuration_error(opened: Open, bad: str) -> None:
    with pytest.raises((ConfigError, host.StoreUrlError)):
        opened(bad)


def test_without_the_library_it_says_what_to_install(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "google.cloud.storage", None)
    with pytest.raises(ConfigError) as caught:
        open_store(url).get("x")
    assert "widelane[gcp]" in caught.value.hint


def test_without_credentials_it_says_how_to_log_in() -> None:
    with pytest.raises(StoreError) as caught:
        Store(CloudBucket("gs://things")).get("x")
    assert "gcloud auth application-default login" in caught.value.hint
