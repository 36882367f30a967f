"""Looks on every lane for machines with our label, and deletes those of this home whose time is over.

The journal decides what is ours: a label alone is not enough, since several homes and users share a project. A machine
that isn't in the journal is reported and never touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from widelane.config import Settings
from widelane.dispatcher.places import journal_path
from widelane.errors import ConfigError, LaneError, StoreError
from widelane.lanes.clock import SystemClock
from widelane.lanes.protocol import Lane, Machine
from widelane.lanes.registry import open_lane
from widelane.ledger import AttemptState, Journal, RunState, fold
from widelane.ledger.events import MachineReaped
from widelane.models.reap import Fate, ReapReport, ReapRow, Standing, UnaskedLane

_GRACE_SECONDS = 900
"""The fence counts from when a machine runs; so long may it take to get there."""
_CONFIRM_SECONDS = 180.0
"""How long a deletion is watched."""
_RUN_LABEL = "widelane-run"


@dataclass(frozen=True, slots=True)
class _Known:
    """An attempt of this home's journal."""

    run: RunState
    attempt: AttemptState


def reap_machines(
    settings: Settings,
    lanes: tuple[str, ...] = (),
    *,
    delete: bool,
    open_one: Callable[[str, Settings], Lane] = open_lane,
    pause: Callable[[float], None] = time.sleep,
) -> ReapReport:
    """Look on those lanes (all configured ones when none is named); with `delete`, remove what is ours and over.

    Raises:
        ConfigError: a lane that isn't configured, or none is.
    """
    journal = Journal(journal_path(settings.home), SystemClock()) if journal_path(settings.home).exists() else None
    rows: list[ReapRow] = []
    unasked: list[UnaskedLane] = []
    try:
        for name in _chosen(settings, lanes):
            try:
                lane = open_one(name, settings)
                found = _look(lane, name, journal)
                for row in found:
                    rows.append(row)
                    if delete and row.fate is Fate.DUE:
                        rows[-1] = _remove(lane, journal, row, pause)
            except (LaneError, StoreError, ConfigError) as error:
                unasked.append(UnaskedLane(lane=name, message=error.message, hint=error.hint))
    finally:
        if journal is not None:
            journal.close()
    return ReapReport(deleting=delete, rows=tuple(rows), unasked=tuple(unasked))


def _chosen(settings: Settings, lanes: tuple[str, ...]) -> tuple[str, ...]:
    known = settings.lanes
    missing = [lane for lane in lanes if lane not in known]
    if missing or not known:
        words = f"no lane {missing[0]!r} is configured" if missing else "no lane is configured"
        raise ConfigError(words, hint=f"configured: {', '.join(known)}" if known else "`widelane init` writes a file")
    return tuple(lane for lane in known if not lanes or lane in lanes)


def _look(lane: Lane, name: str, journal: Journal | None) -> list[ReapRow]:
    """Every machine of the lane, judged. Raises what the lane raises."""
    now = lane.clock.now()
    return [_row(name, machine, *judge(machine, _known(journal, name, machine), now)) for machine in lane.machines()]


def judge(machine: Machine, known: _Known | None, now: datetime) -> tuple[Standing, str]:
    """What a machine is to this home, and why."""
    if known is None:
        return Standing.FOREIGN, "not in this home's journal: another home's, or another user's; it is left alone"
    attempt, intended = known.attempt, known.attempt.intended
    if known.run.ended is not None:
        return Standing.FINISHED, f"run {known.run.run_id} ended: {known.run.ended.state}"
    if attempt.failed is not None:
        return Standing.FINISHED, f"its create counts as failed: {attempt.failed.code}"
    if attempt.released:
        return Standing.FINISHED, "the journal says that it is gone"
    until = datetime.fromisoformat(intended.sent_at) + timedelta(
        seconds=intended.wait_seconds + intended.fence_seconds + _GRACE_SECONDS
    )
    if now >= until:
        return Standing.PAST_FENCE, f"its run limit of {intended.fence_seconds} s is over since {until.isoformat()}"
    return Standing.LIVE, f"run {known.run.run_id} is at it"


def _known(journal: Journal | None, lane: str, machine: Machine) -> _Known | None:
    """The attempt that a machine came from: by its label, and by all that the journal wrote down before it was made."""
    run_id = machine.attempt_id.rpartition("-")[0].rpartition("-")[0]
    if journal is None or not run_id or run_id not in journal.runs_like(run_id):
        return None
    run = fold(journal.events(run_id))
    attempt = run.attempt(machine.attempt_id)
    if attempt is None or attempt.intended.name != machine.name or attempt.rung.lane != lane:
        return None
    if attempt.intended.zone != machine.zone and attempt.rung.zones:
        return None
    return _Known(run, attempt)


def _row(lane: str, machine: Machine, standing: Standing, detail: str) -> ReapRow:
    over = standing in (Standing.FINISHED, Standing.PAST_FENCE)
    return ReapRow(
        lane=lane,
        name=machine.name,
        zone=machine.zone,
        machine_type=machine.machine_type,
        state=machine.state.value,
        created_at=machine.created_at,
        attempt_id=machine.attempt_id,
        run_id=machine.labels.get(_RUN_LABEL, ""),
        standing=standing,
        detail=detail,
        fate=Fate.DUE if over else Fate.KEPT,
    )


def _remove(lane: Lane, journal: Journal | None, row: ReapRow, pause: Callable[[float], None]) -> ReapRow:
    """Delete one, and watch it go. Raises what the lane raises."""
    dispatch_id = row.attempt_id.rpartition("-")[0]
    if journal is not None:
        said = MachineReaped(attempt_id=row.attempt_id, name=row.name, zone=row.zone, reason=row.standing.value)
        journal.append(dispatch_id.rpartition("-")[0], said, dispatch_id)
    lane.delete(row.name, row.zone)
    ends = lane.clock.elapsed() + _CONFIRM_SECONDS
    while True:
        machine = lane.find(row.name, row.zone)
        if machine is None or machine.attempt_id != row.attempt_id:
            return row.model_copy(update={"fate": Fate.DELETED})
        if lane.clock.elapsed() >= ends:
            return row.model_copy(update={"fate": Fate.DELETING})
        pause(lane.poll_seconds / lane.clock.rate)
