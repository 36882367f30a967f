"""Tells the configured command what happened: a run ended, GPUs stand idle, work seems to hang.

The command's words are the user's own; what a plan or a provider wrote reaches it only as JSON on its standard input.
Whatever becomes of it is noted and changes nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from widelane.dispatcher.assembly import settings_of
from widelane.dispatcher.status import status_of
from widelane.lanes.clock import SystemClock
from widelane.ledger import Journal, Recorded, RunState, fold
from widelane.ledger.events import GpusIdle, Notified, RunEnded, WorkQuiet

_SECONDS = 30.0
_KEPT = 400
_MISSED_HOURS = 24


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell, and the words of the command to tell it to."""

    run_id: str
    about: str
    about_seq: int
    command: tuple[str, ...]
    document: dict[str, Any]


def notices(news: Iterable[tuple[RunState, Recorded]]) -> list[Notice]:
    """What of it is to be told: ends of runs, loud events."""
    return [notice for run, record in news if (notice := _notice(run, record)) is not None]


def missed(journal: Journal) -> list[Notice]:
    """Ends of the last day that a supervisor which died never told. An end may be told twice; none is left out."""
    since = (journal.now() - timedelta(hours=_MISSED_HOURS)).isoformat()
    told = {
        record.event.about_seq
        for record in journal.events_of_kind("notified", since)
        if isinstance(record.event, Notified)
    }
    ends = [record for record in journal.events_of_kind("run_ended", since) if record.seq not in told]
    return notices((fold(journal.events(record.run_id)), record) for record in ends)


def tell(journal_file: Path, notice: Notice) -> None:
    """Run the command and write down how that went."""
    ok, detail = _run(notice)
    journal = Journal(journal_file, SystemClock())
    try:
        told = Notified(about=notice.about, about_seq=notice.about_seq, ok=ok, detail=detail)
        journal.append(notice.run_id, told)
    finally:
        journal.close()


def _notice(run: RunState, record: Recorded) -> Notice | None:
    if not run.requested.settings.get("notify") or not _is_loud(record):
        return None
    told = settings_of(run.requested).notify
    assert told is not None, "it is in there"
    status = status_of(run, None).model_dump(mode="json", exclude={"phases": {"__all__": {"attempts", "gpus"}}})
    event = {"kind": record.event.kind, "at": record.at, "seq": record.seq, "dispatch_id": record.dispatch_id}
    body = record.event.model_dump(mode="json", exclude={"kind"})
    return Notice(
        run.run_id, record.event.kind, record.seq, told.command, {"event": event | {"body": body}, "run": status}
    )


def _is_loud(record: Recorded) -> bool:
    event = record.event
    if isinstance(event, GpusIdle):
        return event.level == "loud"
    return isinstance(event, RunEnded) or (isinstance(event, WorkQuiet) and event.level == "suspected")


def _run(notice: Notice) -> tuple[bool, str]:
    """(whether it ended well, why not). Its whole process group ends with its time."""
    env = os.environ | {"WIDELANE_RUN": notice.run_id, "WIDELANE_EVENT": notice.about}
    try:
        process = subprocess.Popen(
            notice.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return False, str(error)[:_KEPT]
    try:
        _, said = process.communicate(json.dumps(notice.document).encode(), timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return False, f"it took more than {_SECONDS:g} s and was ended"
    detail = said.decode(errors="replace").strip()[-_KEPT:]
    return process.returncode == 0, "" if process.returncode == 0 else f"exit code {process.returncode}: {detail}"
