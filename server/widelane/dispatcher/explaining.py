"""Says what a pasted answer is, by its lane's classifier, and what the walk would do, by asking the walk itself."""

from __future__ import annotations

from widelane.dispatcher.walk import End, Try, WalkRules, next_step
from widelane.lanes.pasted.judge import judge
from widelane.lanes.pasted.judged import Judged
from widelane.ledger import AttemptState, WalkState
from widelane.ledger.events import AttemptFailed, AttemptIntended, WalkStarted
from widelane.models.attempt import Failure, Outcome
from widelane.models.error_explanation import Action, ErrorExplanation
from widelane.models.plan import ProvisioningModel
from widelane.models.quota import Admits
from widelane.models.verdict import Rung

_THEN = "2026-01-01T00:00:00+00:00"
_ENDS_A_RUN = frozenset({Outcome.WORKLOAD, Outcome.CONFIG, Outcome.CANCELLED})
"""Ends of a machine that worked after which no other is asked for."""
_PLACES = {"runpod": ("GPU type", "data centre"), "gcp": ("zone", "region")}
_WORDS = {
    Action.NEXT_ZONE: "this {zone} is left out; the next {zone} of the same rung is tried, then the next rung",
    Action.NEXT_REGION: "every {zone} of this {region} is left out; another {region} is tried, else the next rung",
    Action.NEXT_RUNG: "this rung is left out; the next one of the ladder is tried",
    Action.NEXT_LANE: "every rung of this lane is left out; the next lane is tried",
    Action.SKIP_METRIC: "every rung that needs as much of {metric} or more is left out; no attempt is spent",
    Action.REPEAT: "the same create is sent again, a bounded number of times; then the next {zone} or rung",
    Action.LOOK_BY_NAME: "it is looked for by name: ours is adopted, another's is left alone; only then is it sent",
    Action.WAIT: "the request stays queued until its wait budget is used; then it is cancelled, the next rung tried",
    Action.WALK_AGAIN: "units without a record go back; the walk begins again at the top width",
    Action.STOP: "the walk stops; no other lane is tried",
    Action.NONE: "nothing",
}
_WHY = {
    Outcome.CAPACITY: "the request is valid and can't be had now",
    Outcome.QUEUE_EXPIRED: "the request waited its time without a machine",
    Outcome.QUEUE_VANISHED: "the request is no longer queued and never had a machine",
    Outcome.QUOTA: "a limit or balance of your own stands in the way",
    Outcome.CONFLICT: "the name is taken",
    Outcome.TRANSIENT: "it says nothing about the request and may pass",
    Outcome.PREEMPTED: "the service took the machine back",
    Outcome.PERMISSION: "it is about who you are; no waiting helps",
    Outcome.CONFIG: "the request can't work as it is; no waiting helps",
    Outcome.WORKLOAD: "the work itself failed; another machine would not help",
    Outcome.UNKNOWN: "no rule knows this answer",
}
_FAILOVER = "at most one failover, to the last-resort lane, where policy workload_failover says once"


def explain_error(lane: str, data: bytes) -> ErrorExplanation:
    """Class, scope, action and reason of an answer.

    Raises:
        InputError: no such lane, or nothing that could be an answer.
    """
    judged = judge(lane, data)
    failure = judged.failure
    action = what_follows(judged)
    return ErrorExplanation(
        outcome=failure.outcome,
        scope=failure.scope,
        action=action,
        reason=_reason(lane, judged, action),
        lane=lane,
        code=failure.code,
        message=failure.message,
        hint=failure.hint,
        may_have_happened=not failure.outcome_known,
        metric=failure.metric,
        zones=failure.zones_hint,
    )


def what_follows(judged: Judged) -> Action:
    """What the walk does after it. A create's failure is played through the walk, on a ladder that has all there is."""
    failure = judged.failure
    if judged.fine:
        return Action.NONE
    if judged.waits:
        return Action.WAIT
    if failure.outcome is Outcome.PREEMPTED or (judged.ran and failure.outcome not in _ENDS_A_RUN):
        return Action.WALK_AGAIN
    if judged.ran:
        return Action.STOP
    if not failure.outcome_known or failure.outcome is Outcome.CONFLICT:
        return Action.LOOK_BY_NAME
    return _played(failure)


def _played(failure: Failure) -> Action:
    """The first step after a walk's first create failed so."""
    ladder = (_rung("first", 8), _rung("first", 4), _rung("second", 8))
    walk = WalkState(WalkStarted(number=1, ladder=ladder), _THEN)
    intended = AttemptIntended(
        attempt_id="a",
        walk=1,
        rung=0,
        zone=ladder[0].zones[0],
        name="wl-a",
        request_id="r",
        fence_seconds=1,
        wait_seconds=0,
        sent_at=_THEN,
        deadline=_THEN,
        spec_key="k",
    )
    failed = AttemptFailed(attempt_id="a", **failure.model_dump(exclude={"outcome_known", "zones_hint"}))
    walk.attempts.append(AttemptState(intended, ladder[0], _THEN, failed=failed))
    step = next_step(walk, WalkRules(consumes=lambda rung, _metric: float(rung.width)))
    if isinstance(step, End):
        return Action.STOP
    if failure.outcome is Outcome.QUOTA and failure.metric and not (isinstance(step, Try) and step.rung == 2):
        return Action.SKIP_METRIC
    return _where(step, ladder) if isinstance(step, Try) else Action.NEXT_RUNG


def _where(step: Try, ladder: tuple[Rung, ...]) -> Action:
    if ladder[step.rung].lane != ladder[0].lane:
        return Action.NEXT_LANE
    if step.rung:
        return Action.NEXT_RUNG
    return (Action.REPEAT, Action.NEXT_ZONE, Action.NEXT_REGION)[ladder[0].zones.index(step.zone)]


def _rung(lane: str, width: int) -> Rung:
    return Rung(
        lane=lane,
        machine_type=f"{lane}-{width}",
        gpu="",
        width=width,
        provisioning_model=ProvisioningModel.STANDARD,
        zones=("here-a", "here-b", "there-a"),
        admits=Admits.UNKNOWN,
    )


def _reason(lane: str, judged: Judged, action: Action) -> str:
    failure = judged.failure
    if judged.fine:
        return failure.message
    zone, region = _PLACES.get(lane.partition(".")[0], ("place", "region"))
    told = _WORDS[action].format(zone=zone, region=region, metric=failure.metric or "the metric")
    why = _WHY.get(failure.outcome, failure.outcome.value)
    if failure.outcome is Outcome.WORKLOAD:
        told += f"; {_FAILOVER}"
    if failure.outcome is Outcome.UNKNOWN and action is Action.STOP:
        told += ", and the answer is kept"
    return f"{why}; {told}"
