"""A second store on a host: what goes there, what comes back, and what its host may not write here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from widelane.errors import LaneUnknownError, NotFoundError, StoreError
from widelane.store import Store, open_store, publish_runner, write_spec
from widelane.store.depot import Depot, Errand, errand_of, shipment
from widelane.transport import HereLine, Host, RefusedError
from widelane.transport.remote import depot as far

UNIT, OTHER, MERGE, BEFORE = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
ERRAND = Errand("L", "D", frozenset({UNIT, OTHER}))


@pytest.fixture
def ours(tmp_path: Path) -> Store:
    return open_store((tmp_path / "ours").as_uri())


@pytest.fixture
def theirs(tmp_path: Path) -> Store:
    (tmp_path / "theirs").mkdir()
    return open_store((tmp_path / "theirs").as_uri())


@pytest.fixture
def depot(theirs: Store) -> Depot:
    return Depot(Host("ssh.here", HereLine()), str(theirs.folder))


def put_record(store: Store, of: str, *contents: bytes, **more: Any) -> list[str]:
    """A record with these outputs; their digests."""
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    for digest, content in zip(digests, contents, strict=True):
        store.put(f"blobs/{digest}", content)
    outputs = [
        {"path": f"{n}.txt", "sha256": digest, "size": len(content)}
        for n, (digest, content) in enumerate(zip(digests, contents, strict=True))
    ]
    record = {"unit": of, "outputs": outputs, "lease": "L", "host": "h", "log": "l", "run_id": "R"}
    store.put(f"records/{of}.json", json.dumps({**record, "dispatch_id": "D", **more}).encode())
    return digests


def put_spec(store: Store, **more: Any) -> str:
    spec = {"lease": "L", "dispatch_id": "D", "source": None, "inputs": [], "merge": None}
    units = [{"digest": UNIT}, {"digest": OTHER}]
    return write_spec(store, "D", "L", {**spec, "units": units, **more})


def bring(depot: Depot, ours: Store, theirs: Store, errand: Errand = ERRAND, since: int = 0) -> int:
    assert theirs.folder is not None
    news = far.news(theirs.folder, since)
    depot.bring(ours, errand, news["keys"])
    now: int = news["now"]
    return now


def test_work_is_sent_what_it_reads_with_outputs_before_their_records_and_the_spec_last(ours: Store) -> None:
    runner = publish_runner(ours)
    (blob,) = put_record(ours, BEFORE, b"input")
    (done,) = put_record(ours, UNIT, b"done")
    merge = {"digest": MERGE}
    key = put_spec(ours, inputs=[BEFORE], merge=merge, source={"sha256": "s", "key": "sources/s.tar.gz"})
    assert shipment(ours, key, runner) == (
        f"runners/{runner}.pyz",
        "sources/s.tar.gz",
        f"blobs/{blob}",
        f"blobs/{done}",
        f"records/{BEFORE}.json",
        f"records/{UNIT}.json",
        key,
    )


def test_outputs_of_units_that_are_done_stay_here_when_no_merge_needs_them(ours: Store) -> None:
    (done,) = put_record(ours, UNIT, b"done")
    assert f"blobs/{done}" not in shipment(ours, put_spec(ours), "r")
    merged = put_spec(ours, merge={"digest": OTHER})
    put_record(ours, OTHER, b"merged")
    assert f"blobs/{done}" not in shipment(ours, merged, "r")


def test_a_spec_says_what_its_host_may_write(ours: Store) -> None:
    errand = errand_of(ours, put_spec(ours, merge={"digest": MERGE}))
    assert errand == Errand("L", "D", frozenset({UNIT, OTHER, MERGE}))


def test_what_is_missing_arrives_whole(ours: Store, theirs: Store, depot: Depot) -> None:
    contents = {f"blobs/{n}": bytes([n]) * 1000 for n in range(5)}
    for key, content in contents.items():
        ours.put(key, content)
    depot.fill(ours, list(contents))
    assert {key: theirs.get(key) for key in contents} == contents


def test_many_keys_go_in_several_calls(
    ours: Store, theirs: Store, depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("widelane.store.depot._BATCH_KEYS", 2)
    keys = [f"blobs/{n}" for n in range(5)]
    for key in keys:
        ours.put(key, key.encode())
    depot.fill(ours, keys)
    assert theirs.list("blobs/") == keys


def test_a_key_that_we_do_not_have_is_told(ours: Store, depot: Depot) -> None:
    with pytest.raises(NotFoundError, match="blobs/absent"):
        depot.fill(ours, ["blobs/absent"])


def test_a_folder_that_is_gone_is_not_made_again(ours: Store, theirs: Store, depot: Depot) -> None:
    ours.put("blobs/one", b"1")
    assert theirs.folder is not None
    theirs.folder.rmdir()
    with pytest.raises(RefusedError):
        depot.fill(ours, ["blobs/one"])
    assert not theirs.folder.exists()


def test_records_logs_and_last_words_come_home(ours: Store, theirs: Store, depot: Depot) -> None:
    one, two = put_record(theirs, UNIT, b"one", b"two")
    for key in ("leases/L/host.json", "leases/L/progress.json", "logs/L/0-1.log", f"failures/D/{OTHER}/L-1.json"):
        theirs.put(key, key.encode())
    theirs.put("leases/L/finished.json", b"{}")
    bring(depot, ours, theirs)
    assert ours.get(f"blobs/{one}") + ours.get(f"blobs/{two}") == b"onetwo"
    assert set(theirs.list("")) == set(ours.list(""))
    assert ours.get(f"records/{UNIT}.json") == theirs.get(f"records/{UNIT}.json")


def test_a_line_that_breaks_leaves_no_record_without_its_outputs_and_no_last_word(
    ours: Store, theirs: Store, depot: Depot
) -> None:
    (blob,) = put_record(theirs, UNIT, b"one")
    theirs.put("leases/L/finished.json", b"{}")
    assert theirs.folder is not None
    (theirs.folder / "blobs" / blob).unlink()
    with pytest.raises(LaneUnknownError):
        bring(depot, ours, theirs)
    assert ours.list("") == []
    theirs.put(f"blobs/{blob}", b"one")
    bring(depot, ours, theirs)
    assert ours.exists(f"records/{UNIT}.json")
    assert ours.exists("leases/L/finished.json")


def test_what_is_here_already_is_not_written_again_but_for_news(ours: Store, theirs: Store, depot: Depot) -> None:
    ours.put(f"records/{UNIT}.json", b"first")
    put_record(theirs, UNIT, b"one")
    theirs.put("leases/L/progress.json", b"1")
    now = bring(depot, ours, theirs)
    theirs.put("leases/L/progress.json", b"2")
    bring(depot, ours, theirs, since=now)
    assert ours.get(f"records/{UNIT}.json") == b"first"
    assert ours.get("leases/L/progress.json") == b"2"
    assert ours.list("blobs/") == []


@pytest.mark.parametrize(
    "key",
    [
        f"records/{MERGE}.json",
        "leases/other/finished.json",
        "logs/other/0-1.log",
        "failures/E/x/L-1.json",
        "leases/L/../other/finished.json",
        "specs/D/L.json",
        "shards/x.json",
        "elsewhere",
    ],
)
def test_a_host_may_not_write_what_is_not_its_own(ours: Store, depot: Depot, key: str) -> None:
    depot.bring(ours, ERRAND, [[key, 1]])
    assert ours.list("") == []


def test_a_record_that_is_not_of_its_unit_is_refused(ours: Store, theirs: Store, depot: Depot) -> None:
    put_record(theirs, UNIT, unit=OTHER)
    with pytest.raises(StoreError, match="is a record of"):
        bring(depot, ours, theirs)
    theirs.put(f"records/{UNIT}.json", b"not json")
    with pytest.raises(StoreError, match="can't be read"):
        bring(depot, ours, theirs)
    assert ours.list("records/") == []


def test_an_output_that_is_not_what_its_record_says_is_refused(ours: Store, theirs: Store, depot: Depot) -> None:
    (blob,) = put_record(theirs, UNIT, b"one")
    theirs.put(f"blobs/{blob}", b"two")
    with pytest.raises(StoreError):
        bring(depot, ours, theirs)
    assert ours.list("") == []


def test_a_record_cannot_name_a_file_elsewhere(ours: Store, theirs: Store, depot: Depot) -> None:
    output = {"path": "x", "sha256": "../leases/L/host.json", "size": 1}
    put_record(theirs, UNIT, outputs=[output])
    with pytest.raises(StoreError, match="SHA-256"):
        bring(depot, ours, theirs)


def test_a_lease_is_read_before_its_records(theirs: Store) -> None:
    """Whoever hears the last word then also hears of everything written before it."""
    put_record(theirs, UNIT)
    theirs.put("failures/D/x/L-1.json", b"")
    theirs.put("leases/L/finished.json", b"")
    assert theirs.folder is not None
    assert far.news(theirs.folder, 0)["keys"][0][0] == "leases/L/finished.json"
