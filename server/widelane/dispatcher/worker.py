"""Carries one dispatch from where the journal says it stands to its end.

A loop of small steps: fold the journal, do the one thing that is due, write it down. A kill between any two of them
leaves a state from which the same loop goes on.
"""

from __future__ import annotations

from datetime import timedelta

from widelane.dispatcher.assignment import Assignment
from widelane.dispatcher.case import Case
from widelane.dispatcher.creation import Creation
from widelane.dispatcher.following import FENCE_EXPIRED, Following
from widelane.dispatcher.letting_go import release
from widelane.dispatcher.walk import End, Skip, Try, next_step
from widelane.dispatcher.walking import begin_walk, last_resort, rules_of
from widelane.errors import InputError, LaneAuthError
from widelane.lanes.protocol import Lane
from widelane.ledger import AttemptState, WalkState
from widelane.ledger.events import AttemptIntended, PhaseEnded, PhaseStarted, RungSkipped
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState
from widelane.router import wall_seconds

_RELEASED_BY_US = frozenset({Outcome.CANCELLED, Outcome.WORKLOAD, Outcome.CONFIG})
"""Lost leases after which the walk doesn't go on."""


class Worker:
    """One dispatch at work."""

    def __init__(self, case: Case, work: Assignment) -> None:
        self._case = case
        self._work = work

    def run(self) -> None:
        """Return when the dispatch has ended."""
        while self._case.phase.ended is None:
            try:
                self._step()
            except InputError as error:
                self._end(DispatchState.STOPPED, error.code, error.hint or error.message)
            except LaneAuthError as error:
                self._end(DispatchState.STOPPED, error.code, error.hint or error.message)

    def _step(self) -> None:
        case = self._case
        case.refresh()
        attempt = case.phase.open_attempt
        if attempt is not None:
            self._carry_on(attempt, fresh=False)
        elif case.run.cancelled:
            self._end(DispatchState.CANCELLED, "cancelled")
        elif case.phase.started is None:
            self._start()
        elif self._work.complete():
            self._end(DispatchState.SUCCEEDED, "done")
        else:
            self._go_on()

    def _start(self) -> None:
        total, done = self._work.count_done()
        self._case.record(PhaseStarted(units=total, already_done=done))

    def _go_on(self) -> None:
        """No machine is held and work is left: end, walk, or walk again."""
        walks = self._case.phase.walks
        last = walks[-1].attempts[-1] if walks and walks[-1].attempts else None
        if last is not None and last.selected is not None:
            self._after_lease(last)
        elif not walks:
            self._walk_anew("first")
        else:
            self._walk(walks[-1])

    def _after_lease(self, last: AttemptState) -> None:
        end = _end_of_work(last)
        if end is None:
            self._walk_anew(last.lost.code if last.lost is not None else "lost")
        elif self._may_fail_over(last):
            self._fail_over(last)
        else:
            self._end(end.state, end.reason, end.hint)

    def _may_fail_over(self, last: AttemptState) -> bool:
        """Work that failed goes to a lane of last resort once, if the policy says so and it wasn't there already."""
        case, policy = self._case, self._work.policy
        return (
            policy.workload_failover == "once"
            and _failed_at_work(last)
            and not any(walk.started.failover_of for walk in case.phase.walks)
            and last.rung.lane.partition(".")[0] not in policy.last_resort_lanes
            and bool(last_resort(case.phase.requested.verdict.ladder, self._work))
        )

    def _fail_over(self, last: AttemptState) -> None:
        if begin_walk(self._case, self._work, "workload_failover", last.intended.attempt_id) is not None:
            self._end_as_failed()

    def _end_as_failed(self) -> None:
        """The failover found no machine: the work's own failure is what is told."""
        failed = next(a for a in reversed(self._case.phase.attempts) if _failed_at_work(a))
        end = _end_of_work(failed)
        assert end is not None, "work that failed ends the dispatch"
        self._end(end.state, end.reason, f"{end.hint}; its one failover found no machine")

    def _walk_anew(self, reason: str) -> None:
        end = begin_walk(self._case, self._work, reason)
        if end is not None:
            self._end(end.state, end.reason, end.hint)

    def _walk(self, walk: WalkState) -> None:
        step = next_step(walk, rules_of(self._case, self._work))
        if isinstance(step, Skip):
            self._case.record(
                RungSkipped(walk=walk.started.number, rung=step.rung, code=step.code, message=step.message)
            )
        elif isinstance(step, Try):
            self._try(walk, step)
        elif walk.started.failover_of:
            self._end_as_failed()
        else:
            self._end(step.state, step.reason, step.hint)

    def _try(self, walk: WalkState, step: Try) -> None:
        case = self._case
        rung = walk.started.ladder[step.rung]
        lane = case.lane(rung.lane)
        if step.repeat:
            case.edge.pause(lane.poll_seconds * 2.0**step.repeat / lane.clock.rate)
        number = len(case.phase.attempts) + 1
        attempt_id = f"{case.dispatch_id}-{number}"
        key = self._work.write_spec(attempt_id, rung.width)
        now = lane.clock.now()
        case.record(
            AttemptIntended(
                attempt_id=attempt_id,
                walk=walk.started.number,
                rung=step.rung,
                zone=step.zone,
                name=f"wl-{attempt_id}",
                request_id=case.edge.request_id(),
                fence_seconds=self._work.fence_seconds(rung.width),
                wait_seconds=step.wait_seconds,
                sent_at=now.isoformat(),
                deadline=(now + timedelta(seconds=step.wait_seconds or self._work.policy.create_seconds)).isoformat(),
                spec_key=key,
                image=self._work.phase.image,
                disk_gib=self._work.disk_gib(),
                secrets=self._work.phase.secrets,
                least_seconds=wall_seconds(case.phase.requested.verdict, rung.width),
            )
        )
        self._carry_on(case.phase.attempts[-1], fresh=True)

    def _carry_on(self, attempt: AttemptState, *, fresh: bool) -> None:
        """Do what an open attempt needs next."""
        case = self._case
        lane = self._lane_of(attempt)
        if attempt.selected is None:
            Creation(case, lane, attempt, self._work.policy, fresh=fresh).run()
        elif attempt.finished is None and attempt.lost is None:
            self._work.keep_shards(attempt.rung.width)
            Following(case, lane, attempt, self._work).run()
        else:
            release(case, lane, attempt)

    def _lane_of(self, attempt: AttemptState) -> Lane:
        """The lane of an open attempt; a machine may be out there, so it is asked for until it opens."""
        case = self._case
        pause = 1.0
        while True:
            try:
                return case.lane(attempt.rung.lane)
            except LaneAuthError as error:
                case.note(error)
                case.edge.pause(pause)
                pause = min(pause * 2, 60.0)

    def _end(self, state: DispatchState, reason: str, hint: str = "") -> None:
        total, done = self._work.count_done()
        last = self._case.phase.attempts[-1] if self._case.phase.attempts else None
        failed = last.finished.failed if last is not None and last.finished is not None else 0
        self._case.record(
            PhaseEnded(state=state.value, reason=reason, hint=hint, total=total or 0, succeeded=done, failed=failed)
        )


def _end_of_work(last: AttemptState) -> End | None:
    """How a lease that is over ends the dispatch; None when the rest of its units go on elsewhere."""
    if last.finished is not None:
        reason = last.finished.reason or last.finished.state
        hint = "see `widelane logs`; a new dispatch runs only what has no record"
        return End(DispatchState.FAILED, reason, hint)
    if last.lost is None or last.lost.outcome not in _RELEASED_BY_US:
        return None
    stopped = last.lost.outcome is Outcome.CONFIG
    return End(DispatchState.STOPPED if stopped else DispatchState.FAILED, last.lost.code, last.lost.message)


def _failed_at_work(last: AttemptState) -> bool:
    """Whether units or the merge failed: not the set-up, nor a run limit that was reached, which no machine mends."""
    if last.finished is not None:
        return last.finished.state == "failed" and not last.finished.reason.startswith("store_failed")
    lost = last.lost
    return lost is not None and lost.outcome is Outcome.WORKLOAD and lost.code != FENCE_EXPIRED
