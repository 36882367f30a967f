"""GPUs that are held for nothing and work that doesn't move are told, twice looked at, and never stopped."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.lane import Host
from tests.fakes.runs import RUN, Bed
from widelane.dispatcher.watch import Sample, Watch, WatchRules
from widelane.ledger.events import GpusIdle, WorkQuiet
from widelane.models.dispatch import DispatchState, GpuProgress

START = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RULES = WatchRules(idle_gpus=2, advisory=30 * MINUTE, loud=60 * MINUTE, quiet=60 * MINUTE, gap=10 * MINUTE)


def sample(held: int = 8, busy: int = 8, over: int = 0, stage: str = "running", tag: str = "u") -> Sample:
    gpus = tuple(GpuProgress(gpu=str(i), done=0, running=f"{tag}{i}" if i < busy else "") for i in range(held))
    return Sample(held=held, running=busy, over=over, gpus=gpus, stage=stage)


class Watched:
    """A watch that is asked minute by minute. `said`: (minute, kind, level)."""

    def __init__(self, **known: Any) -> None:
        self.watch = Watch(RULES, "a1", 8, **known)
        self.minute = 0
        self.said: list[tuple[int, str, str]] = []

    def look(self, seen: Sample, minutes: int = 1) -> None:
        for _ in range(minutes):
            said = self.watch.look(START + self.minute * MINUTE, seen)
            self.said += [(self.minute, event.kind, event.level) for event in said]
            self.minute += 1

    def of(self, kind: str, *levels: str) -> list[tuple[int, str]]:
        return [(at, level) for at, said, level in self.said if said == kind and (not levels or level in levels)]


def test_several_idle_gpus_are_advice_after_half_an_hour_and_loud_after_an_hour_each_said_once() -> None:
    seen = Watched()
    seen.look(sample(busy=1, stage="merging"), 200)
    assert seen.of("gpus_idle", "advisory", "loud") == [(30, "advisory"), (60, "loud")]


def test_an_event_about_idle_gpus_has_requested_and_realized_width_and_what_the_host_was_at() -> None:
    watch = Watch(RULES, "a1", 8)
    watch.look(START, sample(held=4, busy=0, stage="setup"))
    (event,) = watch.look(START + 31 * MINUTE, sample(held=4, busy=0, stage="setup"))
    assert isinstance(event, GpusIdle)
    assert (event.requested_width, event.realized_width, event.idle, event.stage) == (8, 4, 4, "setup")


@pytest.mark.parametrize(("held", "busy"), [(8, 7), (1, 0), (8, 8)])
def test_one_idle_gpu_is_no_news(held: int, busy: int) -> None:
    seen = Watched()
    seen.look(sample(held=held, busy=busy), 59)
    assert seen.of("gpus_idle") == []


def test_gpus_that_get_work_again_start_a_new_count() -> None:
    seen = Watched()
    seen.look(sample(busy=2), 25)
    seen.look(sample(busy=8))
    seen.look(sample(busy=2), 25)
    assert seen.of("gpus_idle", "advisory", "loud") == []
    assert seen.of("gpus_idle", "over") == [(25, "over")]


def test_idle_gpus_beside_busy_ones_count_on_while_units_end() -> None:
    seen = Watched()
    for over in range(40):
        seen.look(sample(busy=2, over=over))
    assert seen.of("gpus_idle", "advisory") == [(30, "advisory")]


def test_another_supervisor_goes_on_with_the_count_of_the_last_one() -> None:
    first = Watched()
    first.look(sample(busy=0), 20)
    second = Watched(idle=first.watch.idle, quiet=first.watch.quiet)
    second.minute = 25
    second.look(sample(busy=0), 10)
    assert second.of("gpus_idle", "advisory") == [(30, "advisory")]


def test_another_supervisor_counts_anew_when_units_ended_in_between() -> None:
    first = Watched()
    first.look(sample(busy=0), 20)
    second = Watched(idle=first.watch.idle)
    second.minute = 25
    second.look(sample(busy=0, over=3), 25)
    assert second.of("gpus_idle") == [(25, "over"), (35, "noted")]


def test_a_hang_is_suspected_only_at_a_second_sign_after_the_first() -> None:
    seen = Watched()
    seen.look(sample(), 200)
    assert seen.of("work_quiet") == [(60, "noted"), (70, "suspected")]


def test_after_a_long_gap_the_first_look_is_one_sign_and_no_hang_yet() -> None:
    watch = Watch(RULES, "a1", 8)
    watch.look(START, sample())
    (event,) = watch.look(START + 300 * MINUTE, sample())
    assert isinstance(event, WorkQuiet)
    assert event.level == "noted"


@pytest.mark.parametrize("moved", [sample(over=1), sample(tag="v"), sample(stage="merging")])
def test_a_unit_that_begins_or_ends_is_a_sign_of_life(moved: Sample) -> None:
    seen = Watched()
    seen.look(sample(), 65)
    seen.look(moved)
    seen.look(moved, 59)
    assert seen.of("work_quiet") == [(60, "noted"), (65, "over")]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 3), st.integers(1, 40)), max_size=30))
def test_whatever_a_host_reports_nothing_loud_comes_without_an_hour_of_it(reports: list[tuple[int, int, int]]) -> None:
    seen, idle_for = Watched(), 0
    loud_ok: set[int] = set()
    for busy, over, minutes in reports:
        for _ in range(minutes):
            idle_for = idle_for + 1 if 8 - busy >= 2 else 0
            loud_ok |= {seen.minute} if idle_for > 60 else set()
            seen.look(sample(busy=busy, over=over))
    at = [minute for minute, _ in seen.of("gpus_idle", "loud")]
    assert set(at) <= loud_ok


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path)
    made.lane.poll_seconds = 60.0
    yield made
    made.close()


def test_a_machine_with_idle_gpus_is_told_loudly_and_left_alone(bed: Bed) -> None:
    bed.lane.answers[("a2-ultragpu-8g", "FLEX_START", "us-central1-a")] = ["run"]

    def uploading(_seconds: float) -> dict[str, Any]:
        rows = [{"gpu": str(i), "done": 1, "running": ""} for i in range(8)]
        return {"total": 6, "succeeded": 5, "failed": 0, "running": 1, "gpus": rows, "state": "running"}

    bed.lane.hosts = [Host(lasts=5 * 3600.0, progress=uploading)]
    phase = bed.work()
    assert phase.state is DispatchState.SUCCEEDED
    said = [r.event for r in bed.journal.events(RUN) if isinstance(r.event, GpusIdle | WorkQuiet)]
    assert [(e.kind, e.level) for e in said] == [
        ("gpus_idle", "noted"),
        ("gpus_idle", "advisory"),
        ("gpus_idle", "loud"),
        ("work_quiet", "noted"),
        ("work_quiet", "suspected"),
    ]
    assert all((e.requested_width, e.realized_width) == (8, 8) for e in said)
    assert len(phase.attempts) == 1


def test_a_supervisor_that_takes_over_says_nothing_twice(bed: Bed) -> None:
    bed.lane.answers[("a2-ultragpu-8g", "FLEX_START", "us-central1-a")] = ["run"]

    def nothing(_seconds: float) -> dict[str, Any]:
        return {"total": 6, "succeeded": 0, "failed": 0, "running": 0, "gpus": [], "state": "setup"}

    bed.lane.hosts = [Host(lasts=3 * 3600.0, progress=nothing)]
    pause, left = bed.lane.pause, [40]

    def die_after_a_while(seconds: float) -> None:
        pause(seconds)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    bed.lane.pause = die_after_a_while  # type: ignore[method-assign]  # the scripted lane is the test's own
    with pytest.raises(KeyboardInterrupt):
        bed.work()
    bed.work()
    levels = [r.event.level for r in bed.journal.events(RUN) if isinstance(r.event, GpusIdle)]
    assert levels == ["noted", "advisory", "loud"]
