"""Results are only handed out as the hosts recorded them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.runs import DISPATCH, RUN, Bed
from widelane.dispatcher.assembly import work_of
from widelane.dispatcher.fetching import fetch_outputs
from widelane.errors import StoreError
from widelane.ledger import fold

CONTENT = b'{"loss": 0.5}'


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path / "home")
    yield made
    made.close()


def record_one(bed: Bed, kept: bytes) -> None:
    """One unit's record, whose output the store has with these bytes."""
    units = work_of(fold(bed.journal.events(RUN)), "capture").units()
    assert units is not None
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    digest = units.units[0].digest
    outputs = [{"path": "out/0.json", "sha256": sha256, "size": len(CONTENT)}]
    record = {"unit": digest, "outputs": outputs, "lease": "L", "host": "h", "log": ""}
    bed.store.put(
        f"records/{digest}.json", json.dumps(record | {"run_id": RUN, "dispatch_id": DISPATCH, "ended": 1.0}).encode()
    )
    bed.store.put(f"blobs/{sha256}", kept)


def test_an_output_with_the_content_of_its_record_is_pulled(bed: Bed, tmp_path: Path) -> None:
    record_one(bed, CONTENT)
    assert fetch_outputs(fold(bed.journal.events(RUN)), tmp_path / "to", None) == (tmp_path / "to/out/0.json",)
    assert (tmp_path / "to/out/0.json").read_bytes() == CONTENT


@pytest.mark.parametrize("kept", [CONTENT[:-1], CONTENT.replace(b"5", b"6"), b""])
def test_an_output_that_is_not_what_its_record_says_is_refused_and_nothing_of_it_is_left(
    bed: Bed, tmp_path: Path, kept: bytes
) -> None:
    record_one(bed, kept)
    with pytest.raises(StoreError):
        fetch_outputs(fold(bed.journal.events(RUN)), tmp_path / "to", None)
    assert [path for path in (tmp_path / "to").rglob("*") if path.is_file()] == []
