"""What a walk does next: a pure function of the frozen ladder and of what was tried in it.

Capacity tries the next zone (those that the answer names first) and then the next rung; a lost queue request goes to
the next rung; quota closes every rung that the same metric denies; permission and config drop their zone or rung and
stop the walk when they reach further; unknown stops it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from widelane.ledger import AttemptState, WalkState
from widelane.models.attempt import Outcome, Scope
from widelane.models.dispatch import DispatchState
from widelane.models.plan import ProvisioningModel
from widelane.models.quota import Admits
from widelane.models.verdict import Rung

_QUEUE = frozenset({Outcome.QUEUE_EXPIRED, Outcome.QUEUE_VANISHED})
EXHAUSTION = _QUEUE | {Outcome.CAPACITY, Outcome.QUOTA, Outcome.PREEMPTED}
"""Outcomes that count as evidence for a paid lane."""
CHARGED = _QUEUE | {Outcome.GRANTED, Outcome.CAPACITY, Outcome.PREEMPTED}
"""Outcomes that make a walk cost its unit of the day's budget."""
_REPEATABLE = frozenset({Outcome.TRANSIENT, Outcome.CONFLICT})
_REFUSED = frozenset({Outcome.PERMISSION, Outcome.CONFIG})
_SHORTEST_WAIT_SECONDS = 90


@dataclass(frozen=True, slots=True)
class WalkRules:
    """The policy as the walk needs it. `consumes` gives how much of a quota metric a rung takes (0: nothing)."""

    consumes: Callable[[Rung, str], float]
    paid_lanes: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()
    """Lanes that the plan pins the phase to, with a reason."""
    transient_tries: int = 3
    rung_wait_seconds: int = 600
    total_wait_seconds: int = 7200
    queue_lanes: frozenset[str] = frozenset({"slurm"})
    """Kinds of lanes in which every request waits for its turn."""
    boot_looped: frozenset[tuple[str, str]] = field(default_factory=frozenset[tuple[str, str]])
    """(machine type, provisioning model) that died before work too often in a row."""


@dataclass(frozen=True, slots=True)
class Try:
    """Send a create on this rung in this zone; `wait_seconds` is its queue budget."""

    rung: int
    zone: str
    wait_seconds: int
    repeat: int
    """How many creates in this place came to nothing for a passing reason."""


@dataclass(frozen=True, slots=True)
class Skip:
    """Leave this rung out, and say why."""

    rung: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class End:
    """The walk is over without a machine."""

    state: DispatchState
    reason: str
    hint: str = ""


def next_step(walk: WalkState, rules: WalkRules) -> Try | Skip | End:
    """The next create, the next rung to leave out, or the end of the walk."""
    stop = _stopped(walk)
    if stop is not None:
        return stop
    for index, rung in enumerate(walk.started.ladder):
        if index in walk.skipped:
            continue
        why = _skip_reason(walk, index, rung, rules)
        if why is not None:
            return Skip(index, *why)
        zones = _open_zones(walk, index, rules)
        if not zones:
            continue
        if not may_pay(walk, rung.lane, rules):
            return End(
                DispatchState.STOPPED,
                "no_evidence",
                f"{rung.lane} costs money, and the lanes before it were not shown to be exhausted",
            )
        return Try(index, zones[0], _wait(walk, rung, rules), _repeats(walk, index, zones[0]))
    return _exhausted(walk)


def _exhausted(walk: WalkState) -> End:
    tried = [attempt for attempt in walk.attempts if attempt.outcome is not None]
    if tried:
        return End(DispatchState.EXHAUSTED, "capacity", "no rung had a machine; try later, or lower min_width")
    return End(DispatchState.EXHAUSTED, "quota", "every rung was left out; `widelane quota` shows which metric binds")


def _stopped(walk: WalkState) -> End | None:
    """The end that an answer of too wide a reach, or one that nobody knows, forces."""
    last = walk.attempts[-1].failed if walk.attempts else None
    if last is None:
        return None
    if last.outcome in (Outcome.UNKNOWN, Outcome.WORKLOAD):
        return End(DispatchState.STOPPED, last.code or "unknown", last.hint or last.message)
    if last.outcome in _REFUSED and last.scope in (Scope.REGION, Scope.LANE, Scope.PROJECT):
        return End(DispatchState.STOPPED, last.code or last.outcome.value, last.hint or last.message)
    return None


def _skip_reason(walk: WalkState, index: int, rung: Rung, rules: WalkRules) -> tuple[str, str] | None:
    """(code, message) when the rung is to be left out without a create."""
    if rung.admits is Admits.NO:
        binding = rung.binding_quota
        detail = f"{binding.metric}: {binding.usage} of {binding.limit} used, needs {binding.needed}" if binding else ""
        return "quota", detail
    if (rung.machine_type, rung.provisioning_model) in rules.boot_looped:
        return "boot_loop", "its machines died before work, twice in a row"
    if any(attempt.intended.rung == index for attempt in walk.attempts):
        return None
    denied = next((a for a in walk.attempts if _quota_reaches(a, rung, rules) and _closes(a)), None)
    if denied is not None and denied.failed is not None:
        return "quota", f"{denied.failed.metric} refused a rung that needs no more of it"
    if _queues(rung, rules) and _wait(walk, rung, rules) < _SHORTEST_WAIT_SECONDS:
        return "wait_budget", f"the walk has waited its {rules.total_wait_seconds} s"
    return None


def _closes(attempt: AttemptState) -> bool:
    failed = attempt.failed
    return failed is not None and failed.outcome is Outcome.QUOTA and failed.scope in (Scope.PROJECT, Scope.LANE)


def _quota_reaches(attempt: AttemptState, rung: Rung, rules: WalkRules) -> bool:
    """Whether a quota refusal of this attempt says no to that rung too: it needs as much of the metric, or more."""
    failed = attempt.failed
    if failed is None or failed.outcome is not Outcome.QUOTA or not failed.metric or rung.lane != attempt.rung.lane:
        return False
    needed = rules.consumes(rung, failed.metric)
    return needed > 0 and needed >= rules.consumes(attempt.rung, failed.metric)


def _open_zones(walk: WalkState, index: int, rules: WalkRules) -> tuple[str, ...]:
    """Zones of the rung that are left, those that an answer named first; empty when the rung is done with."""
    rung = walk.started.ladder[index]
    closed: set[str] = set()
    hinted: list[str] = []
    for attempt in walk.attempts:
        shut = _shut_zones(attempt, index, rung, rules)
        if shut is None:
            return ()
        closed |= shut
        if attempt.intended.rung == index and attempt.failed is not None:
            hinted = [zone for zone in attempt.failed.zones_hint if zone in places(rung)] + hinted
    closed |= {zone for zone in places(rung) if _repeats(walk, index, zone) >= rules.transient_tries}
    order = dict.fromkeys([*hinted, *places(rung)])
    return tuple(zone for zone in order if zone not in closed)


def _shut_zones(attempt: AttemptState, index: int, rung: Rung, rules: WalkRules) -> set[str] | None:
    """Zones of `rung` that this attempt rules out; None: all of them."""
    failed = attempt.failed
    if failed is None:
        return set() if attempt.outcome is not Outcome.PREEMPTED or attempt.intended.rung != index else None
    zone = attempt.intended.zone
    same = attempt.intended.rung == index
    if failed.outcome is Outcome.QUOTA:
        whole_lane = failed.scope is Scope.LANE and rung.lane == attempt.rung.lane
        reached = same or whole_lane or _quota_reaches(attempt, rung, rules)
        return _by_scope(failed.scope, zone, rung) if reached else set()
    if failed.outcome in _REFUSED and failed.scope is Scope.ZONE:
        return {zone} if rung.machine_type == attempt.rung.machine_type else set()
    if not same or failed.outcome in _REPEATABLE:
        return set()
    if failed.outcome in _QUEUE or failed.outcome in _REFUSED:
        return None
    return _by_scope(failed.scope, zone, rung)


def places(rung: Rung) -> tuple[str, ...]:
    """Where a rung is tried, in order: its zones, or the lane itself when it has none."""
    return rung.zones or (rung.lane,)


def _by_scope(scope: Scope, zone: str, rung: Rung) -> set[str] | None:
    if scope in (Scope.INSTANCE, Scope.ZONE):
        return {zone}
    if scope is Scope.REGION:
        region = zone.rpartition("-")[0]
        return {other for other in places(rung) if other.rpartition("-")[0] == region}
    return None


def _repeats(walk: WalkState, index: int, zone: str) -> int:
    return sum(
        attempt.intended.rung == index
        and attempt.intended.zone == zone
        and attempt.failed is not None
        and attempt.failed.outcome in _REPEATABLE
        for attempt in walk.attempts
    )


def _queues(rung: Rung, rules: WalkRules) -> bool:
    return rung.provisioning_model is ProvisioningModel.FLEX_START or rung.lane.partition(".")[0] in rules.queue_lanes


def _wait(walk: WalkState, rung: Rung, rules: WalkRules) -> int:
    """Queue budget of a rung, seconds of the lane's clock: its own, cut by what the walk has left."""
    if not _queues(rung, rules):
        return 0
    spent = sum(a.intended.wait_seconds for a in walk.attempts if a.outcome in _QUEUE)
    return max(0, min(rules.rung_wait_seconds, rules.total_wait_seconds - spent))


def may_pay(walk: WalkState, lane: str, rules: WalkRules) -> bool:
    """Whether a lane costs nothing, or may be reached: over exhausted lanes, by a pin, or by the one failover."""
    if lane not in rules.paid_lanes or lane in rules.pinned or walk.started.failover_of:
        return True
    return evidence(walk, lane) is not None


def evidence(walk: WalkState, lane: str) -> tuple[str, ...] | None:
    """What shows every lane before `lane` exhausted: attempt ids and `rung:INDEX` of skips.

    None when a rung before it was not shown to be out of stock or quota, or when there is none.
    """
    shown: list[str] = []
    for index, rung in enumerate(walk.started.ladder):
        if rung.lane == lane:
            break
        tries = [attempt for attempt in walk.attempts if attempt.intended.rung == index]
        skipped = walk.skipped.get(index)
        if not tries and (skipped is None or skipped.code not in ("quota", "wait_budget")):
            return None
        if any(attempt.outcome not in EXHAUSTION for attempt in tries):
            return None
        shown += [attempt.intended.attempt_id for attempt in tries] or [f"rung:{index}"]
    return tuple(shown) or None
