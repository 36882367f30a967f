"""A supervisor that dies between any two effects, and the next one: same end, one machine, no unit twice.

Each point is tried, in turn: the worker is cut off right before or right after a journal row or a lane call, and a new
one takes over from the journal alone. The real processes are killed in tests/dispatcher/test_kill_nine.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.lane import Host, ScriptedLane
from tests.fakes.runs import Bed
from widelane.ledger import Journal
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState

pytestmark = pytest.mark.slow

A = "us-central1-a"
WIDE_FLEX = ("a2-ultragpu-8g", "FLEX_START", A)
WIDE = ("a2-ultragpu-8g", "STANDARD", A)
FOUR_FLEX = ("a2-ultragpu-4g", "FLEX_START", A)


class KilledError(BaseException):
    """The process is gone."""


class Killer:
    """Counts the moments between effects and strikes at one of them."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0

    def around(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def struck(*args: Any, **kwargs: Any) -> Any:
            self._moment()
            result = effect(*args, **kwargs)
            self._moment()
            return result

        return struck

    def _moment(self) -> None:
        self.count += 1
        if self.count == self.at:
            raise KilledError


class Struck(ScriptedLane):
    """The same service, seen through a process that may die."""


def degrade(bed: Bed) -> None:
    bed.lane.answers[FOUR_FLEX] = ["run"]


def lose_the_answer(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run-unheard"]


def expire_in_the_queue(bed: Bed) -> None:
    bed.lane.poll_seconds = 200.0  # a few questions within the queue's budget, and so a few moments to strike at
    bed.lane.answers[WIDE_FLEX] = ["queue"]
    bed.lane.answers[WIDE] = ["run"]


def be_preempted(bed: Bed) -> None:
    bed.lane.answers[WIDE_FLEX] = ["run", "run"]
    bed.lane.hosts = [Host(units=2, ends="preempted"), Host()]


def cut_off(bed: Bed, at: int) -> bool:
    """Work until the strike; whether it came."""
    killer = Killer(at)
    lane = bed.lane
    names = ("create", "find", "delete", "poll")
    for name in names:
        setattr(lane, name, killer.around(getattr(type(lane), name).__get__(lane)))
    append = bed.journal.append
    bed.journal.append = killer.around(append)  # type: ignore[method-assign]  # the scripted lane is the test's own
    try:
        bed.work()
    except KilledError:
        return True
    finally:
        for name in names:
            delattr(lane, name)
        bed.journal.close()
        bed.journal = Journal(bed.home / "ledger.db", bed.clock)
    return False


@pytest.mark.parametrize("story", [degrade, lose_the_answer, expire_in_the_queue, be_preempted])
def test_wherever_a_supervisor_dies_the_next_one_ends_the_dispatch_alike(
    tmp_path: Path, story: Callable[[Bed], None]
) -> None:
    calm = Bed(tmp_path / "calm")
    story(calm)
    expected = [(a.intended.zone, a.outcome) for a in calm.work().attempts]
    calm.close()

    at = 0
    struck = True
    while struck:
        at += 1
        bed = Bed(tmp_path / str(at))
        story(bed)
        struck = cut_off(bed, at)
        phase = bed.work()
        bed.close()
        assert phase.state is DispatchState.SUCCEEDED, at
        assert [(a.intended.zone, a.outcome) for a in phase.attempts] == expected, at
        assert bed.lane.alive_at_once == 1, at
        assert bed.lane.machines_ == {}, at
        granted = [a for a in phase.attempts if a.outcome is not Outcome.CAPACITY]
        assert all(a.released or a.failed is not None for a in granted), at
    assert at > 20
