"""The notify command hears of ends and loud events, and whatever it does changes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.runs import RUN, Bed
from widelane.dispatcher.notifying import Notice, missed, notices, tell
from widelane.ledger import Recorded, fold
from widelane.ledger.events import GpusIdle, Notified, RunEnded, WorkQuiet

HEAR = "import os, pathlib, sys; pathlib.Path(sys.argv[1]).write_text(os.environ['WIDELANE_RUN'] + sys.stdin.read())"
EVIL = '$(touch pwned); "`rm -rf`" \n {task}'


def make_bed(folder: Path, *command: str) -> Bed:
    settings = {"home": str(folder), "notify": {"command": list(command)} if command else None}
    bed = Bed(folder, settings=settings, task=EVIL)
    bed.work()
    return bed


def ended(bed: Bed) -> list[Notice]:
    bed.journal.append(RUN, RunEnded(state="exhausted"))
    return missed(bed.journal)


def last(bed: Bed) -> Notified:
    event = bed.journal.events(RUN)[-1].event
    assert isinstance(event, Notified)
    return event


@pytest.fixture
def beds(tmp_path: Path) -> Iterator[Any]:
    made: list[Bed] = []

    def make(*command: str) -> Bed:
        made.append(make_bed(tmp_path / str(len(made)), *command))
        return made[-1]

    yield make
    for bed in made:
        bed.close()


def test_the_command_gets_the_end_as_json_and_no_text_of_the_plan_in_its_words(beds: Any, tmp_path: Path) -> None:
    out = tmp_path / "heard"
    bed = beds(sys.executable, "-c", HEAR, str(out))
    (notice,) = ended(bed)
    assert EVIL not in " ".join(notice.command)
    tell(bed.journal.path, notice)
    heard = json.loads(out.read_text().removeprefix(RUN))
    assert (heard["event"]["kind"], heard["run"]["task"], heard["run"]["state"]) == ("run_ended", EVIL, "exhausted")
    assert heard["run"]["phases"][0]["requested_width"] == 8
    assert last(bed).ok
    assert missed(bed.journal) == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("/no/such/command",), "No such file"),
        ((sys.executable, "-c", "import sys; sys.exit('it is broken')"), "exit code 1: it is broken"),
        ((sys.executable, "-c", "import sys; sys.stdin.close()"), ""),
    ],
)
def test_a_command_that_fails_is_noted_and_the_run_stays_as_it_ended(
    beds: Any, words: tuple[str, ...], why: str
) -> None:
    bed = beds(*words)
    (notice,) = ended(bed)
    before = fold(bed.journal.events(RUN)).ended
    tell(bed.journal.path, notice)
    assert why in last(bed).detail
    assert last(bed).ok == (not why)
    assert fold(bed.journal.events(RUN)).ended == before


def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(
    beds: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("widelane.dispatcher.notifying._SECONDS", 0.2)
    started = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
    bed = beds(sys.executable, "-c", started + "time.sleep(60)")
    (notice,) = ended(bed)
    tell(bed.journal.path, notice)
    assert "was ended" in last(bed).detail


def test_loud_events_are_told_and_quiet_ones_are_not(beds: Any) -> None:
    bed = beds("notify")
    run = fold(bed.journal.events(RUN))

    def told(event: GpusIdle | WorkQuiet) -> bool:
        return bool(notices([(run, Recorded(9, "t", RUN, f"{RUN}-1", event))]))

    idle = {level: told(GpusIdle(attempt_id="a", level=level, since="s")) for level in ("noted", "advisory", "loud")}  # type: ignore[arg-type]  # literals of the loop
    assert idle == {"noted": False, "advisory": False, "loud": True}
    assert not told(WorkQuiet(attempt_id="a", level="noted", since="s"))
    assert told(WorkQuiet(attempt_id="a", level="suspected", since="s"))


def test_nothing_is_told_without_a_command(beds: Any) -> None:
    assert ended(beds()) == []
