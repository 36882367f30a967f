"""Begins walks: the day's budget, quotas as they are now, and the rules that the policy sets."""

from __future__ import annotations

from datetime import timedelta

from widelane.dispatcher.assignment import Assignment
from widelane.dispatcher.case import Case, Passing
from widelane.dispatcher.walk import CHARGED, End, WalkRules
from widelane.errors import ConfigError
from widelane.lanes.protocol import Roomy
from widelane.ledger import AttemptState, fold
from widelane.ledger.events import WalkStarted
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState
from widelane.models.room import LaneRoom
from widelane.models.verdict import Rung
from widelane.router import admit, consumption, fit_rooms, regions_of

_TABLED = frozenset({"gcp", "local"})
"""Lanes whose machines are in tables of ours."""
_FREE_LANES = frozenset({"local"})
"""Lanes whose walks cost nothing of the day's budget."""


def begin_walk(case: Case, work: Assignment, reason: str, failover_of: str = "") -> End | None:
    """Freeze a ladder with quotas as they are now and record the walk; an End when the budgets say no.

    `failover_of` names the attempt whose work failed: then only the lanes of last resort are walked.
    """
    ladder = case.phase.requested.verdict.ladder
    failover_of = failover_of or next((walk.started.failover_of for walk in reversed(case.phase.walks)), "")
    if failover_of:
        ladder = last_resort(ladder, work)
    if not ladder:
        return End(DispatchState.EXHAUSTED, "empty_ladder", "no configured lane holds this work; see `widelane plan`")
    over = _over_budget(case, work, ladder)
    if over is not None:
        return over
    rooms = _rooms(case, ladder)
    fitted = fit_rooms(ladder, rooms, case.phase.requested.verdict, work.policy)
    if not fitted:
        return End(DispatchState.EXHAUSTED, "too_small", _too_small(case, rooms))
    ladder, taken_at = fitted, None
    if any(rung.lane == "gcp" for rung in ladder):
        try:
            snapshot = case.lane("gcp").quotas(regions_of(ladder))
        except Passing:
            snapshot = None  # unknown quota is tried once and marked
        if snapshot is not None:
            taken_at = snapshot.taken_at
            ladder = admit(ladder, snapshot, work.bench, pending=_pending(case))
    case.record(
        WalkStarted(
            number=len(case.phase.walks) + 1,
            ladder=ladder,
            quota_taken_at=taken_at,
            reason=reason,
            failover_of=failover_of,
        )
    )
    return None


def last_resort(ladder: tuple[Rung, ...], work: Assignment) -> tuple[Rung, ...]:
    """The rungs of a ladder that are of last resort."""
    return tuple(rung for rung in ladder if _kind(rung.lane) in work.policy.last_resort_lanes)


def _kind(lane: str) -> str:
    return lane.partition(".")[0]


def _rooms(case: Case, ladder: tuple[Rung, ...]) -> dict[str, LaneRoom]:
    """What the machines of those lanes hold that can say so now; a lane that doesn't answer stays unknown."""
    rooms: dict[str, LaneRoom] = {}
    for name in dict.fromkeys(rung.lane for rung in ladder if rung.lane not in _TABLED):
        try:
            lane = case.lane(name)
            if isinstance(lane, Roomy):
                rooms[name] = lane.room()
        except (*Passing, ConfigError):
            continue  # whether it can be used shows when its turn comes
    return rooms


def _too_small(case: Case, rooms: dict[str, LaneRoom]) -> str:
    held = ", ".join(
        f"{name} holds {'any number of' if room.gpus is None else room.gpus} GPUs"
        + ("" if room.seconds is None else f" for {room.seconds / 3600:g} h")
        for name, room in rooms.items()
    )
    least = max(1, case.phase.requested.min_width)
    return f"{held}; the work needs at least {least} GPUs, for as long as it takes at that width"


def rules_of(case: Case, work: Assignment) -> WalkRules:
    """The policy as the walk needs it."""
    policy = work.policy
    lanes = {rung.lane for rung in case.phase.requested.verdict.ladder}
    pin = work.phase.pin.lane if work.phase.pin is not None and work.phase.pin.reason else None
    return WalkRules(
        consumes=lambda rung, metric: consumption(rung, work.bench).get(metric, 0.0),
        paid_lanes=frozenset(lane for lane in lanes if _kind(lane) in policy.paid_lanes),
        pinned=frozenset(lane for lane in lanes if pin in (lane, _kind(lane))),
        transient_tries=policy.transient_attempts,
        rung_wait_seconds=policy.flex_wait_seconds,
        total_wait_seconds=policy.total_wait_seconds,
        boot_looped=_boot_looped(case.phase.attempts, policy.boot_deaths),
    )


def _boot_looped(attempts: list[AttemptState], most: int) -> frozenset[tuple[str, str]]:
    """Kinds of machine whose last machines all died before work, by the consecutive deaths of each kind.

    A machine counts by the service's id: one that two attempts saw died once.
    """
    deaths: dict[tuple[str, str], set[str]] = {}
    for attempt in attempts:
        kind = (attempt.rung.machine_type, attempt.rung.provisioning_model.value)
        lost, selected = attempt.lost, attempt.selected
        if lost is not None and not lost.worked and lost.outcome is Outcome.UNKNOWN:
            machine = selected.machine_id if selected is not None else ""
            deaths.setdefault(kind, set()).add(machine or attempt.intended.attempt_id)
        elif attempt.realized is not None:
            deaths[kind] = set()
    return frozenset(kind for kind, dead in deaths.items() if len(dead) >= most)


def _pending(case: Case) -> tuple[Rung, ...]:
    """Rungs that other dispatches of this home have asked for and not been given: quotas don't show them yet."""
    rungs: list[Rung] = []
    for run_id in case.journal.live_runs():
        for phase in fold(case.journal.events(run_id)).phases.values():
            attempt = phase.open_attempt
            if phase.requested.dispatch_id != case.dispatch_id and attempt is not None and attempt.selected is None:
                rungs.append(attempt.rung)
    return tuple(rungs)


def _over_budget(case: Case, work: Assignment, ladder: tuple[Rung, ...]) -> End | None:
    """An End when preemptions or the day's walks are used up."""
    rewalks = len(case.phase.walks)
    if rewalks > work.policy.preemption_rewalks:
        hint = f"{rewalks} machines were taken away; what has a record is kept, a new dispatch runs the rest"
        return End(DispatchState.STOPPED, "preempted_too_often", hint)
    if all(rung.lane in _FREE_LANES for rung in ladder):
        return None
    midnight = case.journal.now().replace(hour=0, minute=0, second=0, microsecond=0)
    spent = _charged_walks(case, midnight.isoformat())
    if spent < work.policy.walks_per_day:
        return None
    reset = (midnight + timedelta(days=1)).isoformat()
    untried = ", ".join(f"{rung.machine_type} {rung.provisioning_model}" for rung in ladder)
    return End(
        DispatchState.ATTEMPT_CAP,
        "attempt_cap",
        f"{spent} of {work.policy.walks_per_day} walks of the day are used; untried: {untried}; again from {reset}",
    )


def _charged_walks(case: Case, since: str) -> int:
    """Walks of this task (or of this work, without a task) that got an answer about capacity since then."""
    walks: set[tuple[str, int]] = set()
    for run_id in _runs_that_share(case):
        for phase in fold(case.journal.events(run_id)).phases.values():
            for walk in phase.walks:
                charged = any(a.outcome in CHARGED and a.rung.lane not in _FREE_LANES for a in walk.attempts)
                if charged and walk.started_at >= since:
                    walks.add((phase.requested.dispatch_id, walk.started.number))
    return len(walks)


def _runs_that_share(case: Case) -> tuple[str, ...]:
    requested = case.run.requested
    if requested.task is not None:
        return case.journal.runs_of_task(requested.task)
    return case.journal.runs_with_key(requested.run_key)
