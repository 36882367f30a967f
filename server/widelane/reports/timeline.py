"""A run's journal with times: what happened when, how long after the start, and the widths of each step."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from widelane.models.dispatch import RunEvent, RunStatus
from widelane.reports.narrate import Narrator
from widelane.reports.paper import Paper
from widelane.reports.status import state_word, when


def timeline_report(run: RunStatus, events: Sequence[RunEvent], paper: Paper) -> str:
    """One line an event: its time, the time since the first one, and what it says."""
    lines = [f"{paper.paint(run.run_id, 'strong')}  {state_word(run.state, paper)}"]
    narrator = Narrator(paper)
    start = _moment(events[0].at) if events else None
    for event in events:
        since = "" if start is None or (at := _moment(event.at)) is None else since_start(at - start)
        lines += [f"  {when(event.at)}  {since:>9}  {line}{_widths(event)}" for line in narrator.lines(event)]
    return "\n".join(lines) + "\n"


def since_start(passed: timedelta) -> str:
    """`+1:02:03`, hours counted on."""
    seconds = max(0, int(passed.total_seconds()))
    return f"+{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _moment(at: str) -> datetime | None:
    try:
        return datetime.fromisoformat(at)
    except ValueError:
        return None


def _widths(event: RunEvent) -> str:
    """Requested and realized width, of the events that carry them."""
    requested, realized = event.body.get("requested_width"), event.body.get("realized_width")
    if not requested or realized is None:
        return ""
    return f"  [asked {requested}, got {realized}]"
