"""The one place that decides how the program ends.

0  pass, or done                1  findings, failed, stalled or refused
2  usage or bad input           3  could not judge (a crash of ours among it)
130  interrupted: of `dispatch` and `wait`, that you stopped watching; the run goes on
"""

from __future__ import annotations

import click

from widelane.errors import BusyError, InputError, LaneAuthError, NotFoundError, WidelaneError
from widelane.models.dispatch import DispatchAnswer, DispatchState
from widelane.models.quota import Admits, QuotaReport
from widelane.models.reap import ReapReport
from widelane.models.verdict import Verdict

DONE = 0
REFUSED = 1
BAD_INPUT = 2
UNJUDGED = 3
INTERRUPTED = 130
PIPE_CLOSED = 141


def of_error(error: BaseException) -> int:
    """The code of a failure. What isn't a failure that we raise on purpose is a crash."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return PIPE_CLOSED
    if isinstance(error, (click.ClickException, InputError, NotFoundError, LaneAuthError)):
        return BAD_INPUT
    if isinstance(error, BusyError):
        return REFUSED
    return UNJUDGED


def is_crash(error: BaseException) -> bool:
    """Whether nobody raised it on purpose."""
    return of_error(error) == UNJUDGED and not isinstance(error, WidelaneError)


def of_verdict(verdict: Verdict) -> int:
    """PASS or REVISE."""
    return DONE if verdict is Verdict.PASS else REFUSED


def of_state(state: DispatchState) -> int:
    """A run: every end but success is a 1; one that still goes on is none."""
    return DONE if state.live or state is DispatchState.SUCCEEDED else REFUSED


def of_answer(answer: DispatchAnswer) -> int:
    """What `dispatch` answered, before anything of a run is known."""
    if answer.state is not None:
        return of_state(answer.state)
    return of_verdict(answer.plan.verdict) if answer.plan is not None else DONE


def of_reap(report: ReapReport) -> int:
    """Unjudged when a lane didn't answer; refused while something that should be gone is there."""
    if report.unasked:
        return UNJUDGED
    return REFUSED if report.left else DONE


def of_quota(report: QuotaReport) -> int:
    """Refused when every rung is denied; an unknown one isn't."""
    denied = bool(report.rungs) and all(rung.admits is Admits.NO for rung in report.rungs)
    return REFUSED if denied else DONE
