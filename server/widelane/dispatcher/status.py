"""What a run looks like from outside: the folded journal, with the hosts' progress laid over it."""

from __future__ import annotations

from widelane.dispatcher.schedule import run_state
from widelane.errors import StoreError
from widelane.ledger import AttemptState, PhaseState, RunState, WalkState
from widelane.models.attempt import AttemptRow, Outcome
from widelane.models.dispatch import GpuProgress, PhaseStatus, RunStatus, UnitCounts
from widelane.store import Store, read_progress

_BODY_SHOWN = 400


def status_of(run: RunState, store: Store | None) -> RunStatus:
    """The status of a run. Without a store the counts are those of the journal."""
    return RunStatus(
        run_id=run.run_id,
        state=run_state(run),
        task=run.requested.task,
        plan_digest=run.requested.plan_digest,
        started_at=run.requested_at,
        ended_at=run.ended_at,
        note=run.ended.note if run.ended is not None else "",
        accepted=run.requested.accepted,
        phases=tuple(_phase(phase, store) for phase in run.phases.values()),
        last_seq=run.last_seq,
    )


def _phase(phase: PhaseState, store: Store | None) -> PhaseStatus:
    attempt = _shown(phase)
    selected = attempt.selected if attempt is not None else None
    realized = attempt.realized.realized_width if attempt is not None and attempt.realized is not None else None
    units, gpus = _units(phase, attempt, store)
    reason, hint = _reason(phase)
    held = attempt is not None and attempt.open and selected is not None
    return PhaseStatus(
        name=phase.requested.name,
        dispatch_id=phase.requested.dispatch_id,
        state=phase.state,
        reason=reason,
        hint=hint,
        requested_width=phase.requested.requested_width,
        realized_width=realized,
        lane=selected.lane if selected is not None else None,
        machine_type=selected.machine_type if selected is not None else None,
        provisioning_model=selected.provisioning_model if selected is not None else None,
        zone=selected.zone if selected is not None else None,
        machine=attempt.intended.name if held and attempt is not None else None,
        attempts=tuple(row for walk in phase.walks for row in _rows(walk)),
        units=units,
        gpus=gpus,
        alarms=_alarms(attempt) if held and attempt is not None else (),
    )


def _shown(phase: PhaseState) -> AttemptState | None:
    """The attempt whose machine is shown: the newest that was granted."""
    return next((attempt for attempt in reversed(phase.attempts) if attempt.selected is not None), None)


def _alarms(attempt: AttemptState) -> tuple[str, ...]:
    idle, quiet = attempt.idle, attempt.quiet
    said = [idle.words] if idle is not None and idle.level != "noted" else []
    return (*said, quiet.words) if quiet is not None and quiet.level == "suspected" else tuple(said)


def _reason(phase: PhaseState) -> tuple[str, str]:
    if phase.ended is not None:
        return phase.ended.reason, phase.ended.hint
    if phase.trouble is not None:
        return phase.trouble.code, phase.trouble.hint or phase.trouble.message
    attempt = phase.open_attempt
    if attempt is not None and attempt.selected is None and attempt.hint:
        return "queued", attempt.hint
    return "", ""


def _units(
    phase: PhaseState, attempt: AttemptState | None, store: Store | None
) -> tuple[UnitCounts, tuple[GpuProgress, ...]]:
    if phase.ended is not None:
        ended = phase.ended
        return UnitCounts(total=ended.total, succeeded=ended.succeeded, failed=ended.failed), ()
    started = phase.started
    planned = phase.requested.verdict.units
    counts = (
        UnitCounts(total=planned)
        if started is None
        else UnitCounts(total=started.units or planned, succeeded=started.already_done)
    )
    if attempt is None or store is None:
        return counts, ()
    try:
        progress = read_progress(store, attempt.intended.attempt_id)
    except StoreError:
        return counts, ()
    if progress is None:
        return counts, ()
    shown = UnitCounts(
        total=progress.total, succeeded=progress.succeeded, failed=progress.failed, running=progress.running
    )
    return shown, progress.gpus


def _rows(walk: WalkState) -> list[AttemptRow]:
    """A walk's attempts and skips, in ladder order."""
    rows: list[tuple[int, AttemptRow]] = []
    for index, skipped in walk.skipped.items():
        rung = walk.started.ladder[index]
        rows.append(
            (
                index,
                AttemptRow(
                    attempt_id="",
                    lane=rung.lane,
                    machine_type=rung.machine_type,
                    width=rung.width,
                    provisioning_model=rung.provisioning_model,
                    zone=None,
                    outcome=Outcome.SKIPPED,
                    code=skipped.code,
                    message=skipped.message,
                ),
            )
        )
    rows += [(attempt.intended.rung, _row(attempt)) for attempt in walk.attempts]
    rows.sort(key=lambda row: row[0])
    return [row for _, row in rows]


def _row(attempt: AttemptState) -> AttemptRow:
    rung, failed, lost = attempt.rung, attempt.failed, attempt.lost
    end = lost if lost is not None else failed
    return AttemptRow(
        attempt_id=attempt.intended.attempt_id,
        lane=rung.lane,
        machine_type=rung.machine_type,
        width=rung.width,
        provisioning_model=rung.provisioning_model,
        zone=attempt.intended.zone,
        outcome=attempt.outcome,
        code=end.code if end is not None else "",
        message=end.message if end is not None else "",
        body=failed.body[:_BODY_SHOWN] if failed is not None else "",
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
    )
