"""When a run is over, and what keeps one that isn't and yet can't go on."""

from __future__ import annotations

import json
import time
from collections import Counter

from .base import LIVE, OVER
from .desk import Desk
from .roll import Run

_MOST_BLOCKS = 20


def conclude(desk: Desk, run: Run, gate_why: str) -> bool:
    """End a run that has nothing left to do, or can't do it; True when it is no longer active."""
    if run.live:
        return False
    totals = desk.roll.totals(run)
    if any(totals[state] for state in (*LIVE, "cooling")):
        return False
    left = sum(totals.values()) - sum(totals[state] for state in OVER)
    if left == 0 and not totals["stuck"]:
        return _end(desk, run, _over(totals), [])
    if run.paused:
        return _end(desk, run, "paused", ["someone paused the run"])
    if totals["held"]:
        return False
    if desk.roll.startable(run):
        if not _waited_too_long(desk, run):
            return False
        return _end(desk, run, "stalled", [f"nothing could start for {run.spec['gate_timeout']} s: {gate_why}"])
    return _end(desk, run, "stalled", blocks(desk, run))


def _over(totals: Counter[str]) -> str:
    if totals["succeeded"] == sum(totals.values()):
        return "done"
    return "cancelled" if totals["cancelled"] and not totals["failed"] else "done_with_failures"


def _waited_too_long(desk: Desk, run: Run) -> bool:
    limit = run.spec["gate_timeout"]
    now = time.monotonic()
    if desk.live:
        run.blocked_since = None
        return False
    if run.blocked_since is None:
        run.blocked_since = now
        if limit is not None:
            desk.loop.after(limit + 0.01, lambda: None)
    return limit is not None and now - run.blocked_since >= limit


def blocks(desk: Desk, run: Run) -> list[str]:
    """What keeps a stalled run, one line each: paused phases, then the jobs that others wait for."""
    found = [f"phase {phase.name} is paused: {phase.paused}" for phase in run.phases.values() if phase.paused]
    rows = desk.book.db.execute(
        "select name, state, reason, why from job where run = ? and state in ('stuck', 'failed') order by id limit ?",
        (run.id, _MOST_BLOCKS),
    )
    found += [f"{name} is {state} ({reason}): {why}" for name, state, reason, why in rows]
    totals = desk.roll.totals(run)
    if totals["waiting"]:
        found.append(f"{totals['waiting']} jobs wait for what they need")
    if totals["ready"]:
        found.append(f"{totals['ready']} jobs are ready in paused phases")
    return found


def _end(desk: Desk, run: Run, state: str, blocked: list[str]) -> bool:
    desk.book.begin()
    ended = None if state == "paused" else time.time()
    desk.book.db.execute(
        "update run set state = ?, blocks = ?, ended = ? where id = ?", (state, json.dumps(blocked), ended, run.id)
    )
    desk.book.event(run.id, "run", state, "; ".join(blocked)[:500])
    return True
