"""The store: atomic, first writer wins, and clear about what it can't do."""

from __future__ import annotations

import errno
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.hostbench import until
from widelane.errors import ConfigError, NotFoundError, StoreError
from widelane.runner.host import store as host
from widelane.store import Store, open_store


def test_a_value_is_read_back_and_overwritten(store: Store) -> None:
    store.put("a/b", b"1")
    store.put("a/b", b"2")
    assert store.get("a/b") == b"2"
    assert store.exists("a/b")
    assert not store.exists("a")
    assert store.list("a/") == ["a/b"]
    assert open_store(store.url).get("a/b") == b"2"


def test_the_first_writer_wins(store: Store) -> None:
    assert store.put_if_absent("records/x.json", b"first")
    assert not store.put_if_absent("records/x.json", b"second")
    assert store.get("records/x.json") == b"first"


def test_files_go_in_and_come_out_with_their_digest_checked(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "f"
    source.write_bytes(b"data")
    right = "3a6eb0790f39ac87c94f3856b2dd2c5d110e6811602261a9a923d3bb23adc8b7"
    store.put_file("blobs/x", source, right)
    store.get_to("blobs/x", tmp_path / "new" / "g", right)
    assert (tmp_path / "new" / "g").read_bytes() == b"data"
    with pytest.raises(StoreError, match="changed while"):
        store.put_file("blobs/y", source, "0" * 64)
    with pytest.raises(StoreError, match="content has sha256"):
        store.get_to("blobs/x", tmp_path / "new" / "h", "0" * 64)
    assert store.list("") == ["blobs/x"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["g"]


def test_a_key_that_is_not_there_is_not_found(store: Store, tmp_path: Path) -> None:
    store.put("a", b"")
    for key in ("b", "a/b", "c/d"):
        with pytest.raises(NotFoundError):
            store.get(key)
        with pytest.raises(NotFoundError):
            store.get_to(key, tmp_path / "x")
    assert store.list("none/") == []


@pytest.mark.parametrize("key", ["", "/a", "a//b", "../a", "a/..", "a/./b", "a\0b", "a/.tmp-1"])
def test_a_key_cannot_leave_the_store(store: Store, key: str) -> None:
    for act in (lambda: store.put(key, b""), lambda: store.get(key), lambda: store.exists(key)):
        with pytest.raises(StoreError):
            act()


@pytest.mark.parametrize(
    "url", ["", "/tmp/x", "ftp://x", "file://host/x", "file:x", "file:///x?y", "s3://b/p", "gs://b/p?x=y"]
)
def test_a_url_that_cannot_be_opened_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert caught.value.hint


def test_what_the_system_says_is_passed_on_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file where the folder should be")
    with pytest.raises(StoreError):
        open_store((tmp_path / "store").as_uri()).put("a", b"")
    with pytest.raises(StoreError) as caught:
        open_store("file:///dev/full/x").put("a", b"")
    assert "/dev/full/x" in caught.value.message


class Full(host.FileStore):
    def put(self, key: str, data: bytes, durable: bool = True) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), key)


def test_a_full_disk_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No space left") as caught:
        Store(Full(tmp_path)).put("a", b"")
    assert "free some space" in caught.value.hint


def _write(root: Path, number: int, start: object, wins: object) -> None:
    client = host.FileStore(root)
    start.wait()  # type: ignore[attr-defined]  # a multiprocessing barrier
    for key in range(50):
        if client.put_if_absent(f"records/{key}", str(number).encode() * 5000):
            wins.put((key, number))  # type: ignore[attr-defined]  # a multiprocessing queue


class Linkless(host.FileStore):
    """A file system without hard links."""

    def _link(self, temp: Path, final: Path) -> None:
        raise OSError(errno.EPERM, "no links here")


def _write_linkless(root: Path, number: int, start: object, wins: object) -> None:
    client = Linkless(root)
    start.wait()  # type: ignore[attr-defined]  # a multiprocessing barrier
    for key in range(50):
        if client.put_if_absent(f"records/{key}", str(number).encode() * 5000):
            wins.put((key, number))  # type: ignore[attr-defined]  # a multiprocessing queue


@pytest.mark.parametrize("write", [_write, _write_linkless])
def test_of_many_processes_exactly_one_wins_each_key_and_its_value_stays(tmp_path: Path, write: object) -> None:
    context = multiprocessing.get_context("fork")
    start, wins = context.Barrier(6), context.Queue()
    writers = [context.Process(target=write, args=(tmp_path, number, start, wins)) for number in range(6)]  # type: ignore[arg-type]  # a function
    for writer in writers:
        writer.start()
    won = dict(wins.get(timeout=30) for _ in range(50))
    for writer in writers:
        writer.join(30)
        assert writer.exitcode == 0
    assert wins.empty()
    assert sorted(won) == list(range(50))
    for key, number in won.items():
        assert (tmp_path / f"records/{key}").read_bytes() == str(number).encode() * 5000
    assert list(tmp_path.rglob(".tmp-*")) == []


def test_a_writer_that_is_killed_leaves_no_half_value(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from widelane.runner.host.store import FileStore\n"
        "store = FileStore(Path(sys.argv[1])); i = 0\n"
        "while True:\n    store.put('k', str(i % 10).encode() * 200_000); i += 1\n"
    )
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
        until((tmp_path / "k").exists)
        for _ in range(20):
            value = (tmp_path / "k").read_bytes()
            assert len(value) == 200_000
            assert len(set(value)) == 1
        writer.kill()
        writer.wait()
    assert host.FileStore(tmp_path).list("") == ["k"]
