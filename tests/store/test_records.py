"""What hosts wrote, read back; outputs into a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from widelane.errors import StoreError
from widelane.runner import bundle
from widelane.store import (
    Output,
    Store,
    UnitRecord,
    failure_records,
    log_tail,
    publish_runner,
    pull,
    read_finished,
    read_host,
    read_progress,
    unit_records,
    write_spec,
)


def record(unit: str, ended: float = 1.0, workdir: str = "", **files: str) -> UnitRecord:
    outputs = tuple(
        Output(path=path.replace("__", "/"), sha256=hashlib.sha256(text.encode()).hexdigest(), size=len(text))
        for path, text in files.items()
    )
    return UnitRecord(
        unit=unit,
        outputs=outputs,
        workdir=workdir,
        ended=ended,
        lease="L",
        host="h",
        log="k",
        run_id="R",
        dispatch_id="D",
    )


def keep(store: Store, *texts: str) -> None:
    for text in texts:
        store.put(f"blobs/{hashlib.sha256(text.encode()).hexdigest()}", text.encode())


def test_units_with_a_record_are_found_by_digest(store: Store) -> None:
    store.put("records/a.json", record("a", x="1").model_dump_json().encode())
    assert list(unit_records(store, ["a", "b"])) == ["a"]
    assert unit_records(store, ["a"])["a"].outputs[0].path == "x"


def test_fields_of_a_newer_runner_are_passed_over_and_missing_ones_named(store: Store) -> None:
    body = json.loads(record("a").model_dump_json()) | {"later": {"x": 1}}
    store.put("records/a.json", json.dumps(body).encode())
    assert unit_records(store, ["a"])["a"].unit == "a"
    del body["lease"]
    store.put("records/b.json", json.dumps(body).encode())
    with pytest.raises(StoreError, match=r"records/b.json can't be read: lease"):
        unit_records(store, ["b"])
    store.put("records/c.json", b"{half")
    with pytest.raises(StoreError, match=r"records/c.json"):
        unit_records(store, ["c"])


def test_what_a_lease_has_not_said_yet_is_none(store: Store) -> None:
    assert (read_host(store, "L"), read_progress(store, "L"), read_finished(store, "L")) == (None, None, None)
    assert failure_records(store, "D") == ()


def test_reports_and_failures_are_read(store: Store) -> None:
    store.put("leases/L/finished.json", b'{"state": "failed", "failed": 1, "total": 2, "succeeded": 1}')
    finished = read_finished(store, "L")
    assert finished is not None
    assert (finished.state, finished.total, finished.merge) == ("failed", 2, None)
    body = json.loads(record("a").model_dump_json()) | {"reason": "exit", "exit_code": 3, "partial": ["x"]}
    store.put("failures/D/a/L-1.json", json.dumps(body).encode())
    [failure] = failure_records(store, "D")
    assert (failure.reason, failure.exit_code, failure.partial) == ("exit", 3, ("x",))
    assert failure_records(store, "D2") == ()


def test_the_end_of_a_log_is_text_whatever_its_bytes(store: Store) -> None:
    store.put("logs/L/0-1.log", b"start\xff\xfeend")
    assert log_tail(store, "logs/L/0-1.log", 4) == "\ufffdend"


def test_outputs_are_pulled_to_where_the_units_made_them(store: Store, tmp_path: Path) -> None:
    keep(store, "one", "two")
    to = tmp_path / "to"
    found = pull(store, [record("a", workdir="gen", out__1="one"), record("b", two="two")], to)
    assert found == (to / "gen/out/1", to / "two")
    assert (to / "gen/out/1").read_text() == "one"
    before = (to / "two").stat().st_ino
    pull(store, [record("b", two="two")], to)
    assert (to / "two").stat().st_ino == before, "what is there with that content is kept"
    (to / "two").write_text("owt")
    pull(store, [record("b", two="two")], to)
    assert (to / "two").read_text() == "two"


def test_of_two_units_that_made_one_path_the_later_counts(store: Store, tmp_path: Path) -> None:
    keep(store, "old", "new")
    for order in (1, -1):
        pull(store, [record("a", 2.0, x="new"), record("b", 1.0, x="old")][::order], tmp_path / "to")
        assert (tmp_path / "to/x").read_text() == "new"


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", "", ".", "a\0b"])
def test_a_record_cannot_write_outside(store: Store, tmp_path: Path, path: str) -> None:
    keep(store, "one")
    with pytest.raises(StoreError, match="isn't a path below"):
        pull(store, [record("a", 1.0, "", **{path: "one"})], tmp_path / "to")
    with pytest.raises(StoreError, match="isn't a path below"):
        pull(store, [record("a", workdir="../up", x="one")], tmp_path / "to")


def test_a_link_in_the_folder_is_not_followed_outside(store: Store, tmp_path: Path) -> None:
    keep(store, "one")
    (tmp_path / "outside").mkdir()
    (tmp_path / "to").mkdir()
    (tmp_path / "to/link").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match="through a link"):
        pull(store, [record("a", link__x="one")], tmp_path / "to")
    (tmp_path / "to/file").symlink_to(tmp_path / "outside/y")
    pull(store, [record("a", file="one")], tmp_path / "to")
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_blob_with_another_content_is_refused(store: Store, tmp_path: Path) -> None:
    [output] = record("a", x="one").outputs
    store.put(f"blobs/{output.sha256}", b"other")
    with pytest.raises(StoreError, match="content has sha256"):
        pull(store, [record("a", x="one")], tmp_path / "to")
    assert list((tmp_path / "to").iterdir()) == []


def test_the_runner_is_published_once_under_its_digest(store: Store) -> None:
    sha256 = publish_runner(store)
    assert publish_runner(store) == sha256
    assert store.list("runners/") == [f"runners/{sha256}.pyz"]
    assert bundle.digest(store.get(f"runners/{sha256}.pyz")) == sha256


def test_a_spec_is_written_where_its_host_looks(store: Store) -> None:
    assert write_spec(store, "D", "A", {"spec": 1}) == "specs/D/A.json"
    assert json.loads(store.get("specs/D/A.json")) == {"spec": 1}
