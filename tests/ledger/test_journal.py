"""The journal keeps what it took, in order, through kills and between processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from widelane.errors import LedgerError
from widelane.ledger import Journal, fold, parse_event
from widelane.ledger.events import CancelRequested, PhaseStarted, RunEnded, RunRequested

CLOCK_SOURCE = """
from datetime import UTC, datetime
class Clock:
    rate = 1.0
    def now(self): return datetime.now(UTC)
    def elapsed(self): return 0.0
"""


class FixedClock:
    rate = 1.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def elapsed(self) -> float:
        return 0.0


def requested(key: str = "k", task: str | None = None) -> RunRequested:
    return RunRequested(
        run_key=key,
        task=task,
        plan={"widelane": 1, "phases": []},
        plan_digest="d",
        origin="plan.md",
        phases=(),
        store_url="file:///s",
        runner_sha256="r",
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "ledger.db"


@pytest.fixture
def journal(path: Path):
    opened = Journal(path, FixedClock())
    yield opened
    opened.close()


def test_events_come_back_as_they_were_written(journal: Journal) -> None:
    journal.append("r1", requested())
    journal.append("r1", CancelRequested(by="me"))
    journal.append("r2", requested())
    events = [record.event for record in journal.events("r1")]
    assert events == [requested(), CancelRequested(by="me")]
    assert [record.event for record in journal.events("r1", after=1)] == [CancelRequested(by="me")]


def test_a_run_is_live_until_its_end_is_written(journal: Journal) -> None:
    journal.append("r1", requested())
    journal.append("r2", requested())
    journal.append("r1", RunEnded(state="succeeded"))
    assert journal.live_runs() == ("r2",)
    assert journal.runs() == ("r2", "r1")


def test_runs_are_found_by_key_task_and_beginning(journal: Journal) -> None:
    journal.append("r1-ab", requested("k1", "7"))
    journal.append("r1-ac", requested("k2", "7"))
    journal.append("r_x%", requested("k1"))
    assert journal.runs_with_key("k1") == ("r_x%", "r1-ab")
    assert journal.runs_of_task("7") == ("r1-ac", "r1-ab")
    assert journal.runs_like("r1-a") == ("r1-ab", "r1-ac")
    assert journal.runs_like("r_") == ("r_x%",), "wildcards of the query language are plain characters"
    assert journal.runs_like("%") == ()


def test_a_transaction_that_fails_leaves_nothing(journal: Journal) -> None:
    with pytest.raises(RuntimeError), journal.transaction():
        journal.append("r1", requested())
        raise RuntimeError
    assert journal.runs() == ()


def test_another_connection_sees_an_event_as_soon_as_it_is_written(path: Path, journal: Journal) -> None:
    other = Journal(path, FixedClock())
    try:
        before = other.data_version()
        journal.append("r1", requested())
        assert other.data_version() != before
        assert other.live_runs() == ("r1",)
    finally:
        other.close()


def test_what_was_written_outlives_a_kill_of_the_writer(path: Path) -> None:
    program = CLOCK_SOURCE + (
        "import sys\nfrom pathlib import Path\nfrom widelane.ledger import Journal\n"
        "from widelane.ledger.events import CancelRequested\n"
        "journal = Journal(Path(sys.argv[1]), Clock())\n"
        "while True:\n    print(journal.append('r', CancelRequested()), flush=True)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    seen = [int(writer.stdout.readline()) for _ in range(50)]
    os.kill(writer.pid, signal.SIGKILL)
    seen += [int(line) for line in writer.stdout.read().splitlines() if line.strip().isdigit()]
    writer.stdout.close()
    writer.wait()
    again = Journal(path, FixedClock())
    try:
        assert {record.seq for record in again.events("r")} >= set(seen)
    finally:
        again.close()


def test_writers_in_several_processes_lose_nothing(path: Path) -> None:
    program = CLOCK_SOURCE + (
        "import sys\nfrom pathlib import Path\nfrom widelane.ledger import Journal\n"
        "from widelane.ledger.events import CancelRequested\n"
        "journal = Journal(Path(sys.argv[1]), Clock())\n"
        "for _ in range(40): journal.append('r', CancelRequested(by=sys.argv[2]))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", program, str(path), str(n)]) for n in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    again = Journal(path, FixedClock())
    try:
        assert len(again.events("r")) == 120
    finally:
        again.close()


def test_a_journal_of_a_newer_program_is_refused_and_left_alone(path: Path, journal: Journal) -> None:
    raw = sqlite3.connect(path)
    raw.execute("PRAGMA user_version=99")
    raw.close()
    with pytest.raises(LedgerError, match="newer"):
        Journal(path, FixedClock())


def test_a_file_that_is_no_journal_is_refused_with_its_place(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 40)
    with pytest.raises(LedgerError, match=r"ledger\.db"):
        Journal(path, FixedClock())


def test_a_folder_that_can_not_be_made_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="WIDELANE_HOME"):
        Journal(tmp_path / "file" / "ledger.db", FixedClock())


def test_the_first_form_of_each_event_still_loads(repo: Path) -> None:
    lines = (repo / "tests/golden/ledger/v1.jsonl").read_text().splitlines()
    kinds = {parse_event(line).kind for line in lines}
    assert len(kinds) == len(lines) == 17


def test_events_without_their_request_can_not_be_folded(journal: Journal) -> None:
    journal.append("r1", PhaseStarted(), "d")
    with pytest.raises(ValueError, match="before run_requested"):
        fold(journal.events("r1"))
