"""Which unit is next: every GPU that can work does, none works for two, wide ones come first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from widelane.runner.host.board import Board
from widelane.runner.host.slots import Slots
from widelane.runner.host.state import Job, State


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    return State(tmp_path_factory.mktemp("state") / "state.db")


WORK = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 5)), max_size=25)


@settings(deadline=None)
@given(work=WORK, width=st.sampled_from([1, 2, 4, 8]))
def test_no_gpu_idles_while_a_unit_that_fits_waits(state: State, work: list[tuple[int, int]], width: int) -> None:
    board, slots = Board(state), Slots(tuple(f"GPU-{i}" for i in range(width)))
    waiting = {str(i): min(need, width) for i, (need, _) in enumerate(work)}
    for name, need in waiting.items():
        board.add(Job(name), need)
        board.queue(Job(name))
    running: list[tuple[int, Job, tuple[int, ...]]] = []
    now = 0
    while waiting or running:
        while (found := board.take(len(slots.free()))) is not None:
            job, need = found
            assert need == waiting.pop(job.name)
            taken = tuple(slots.free()[:need])
            assert len(taken) == need
            slots.take(taken, job.name)
            running.append((now + work[int(job.name)][1], job, taken))
        assert all(need > len(slots.free()) for need in waiting.values())
        running.sort(key=lambda item: item[0])
        now, job, taken = running.pop(0)
        slots.give_back(taken, done=True)
        board.move(job, "succeeded")
    assert board.count("succeeded") == board.count() == len(work)
    assert slots.free() == list(range(width))


def test_wide_units_come_first_and_equal_ones_in_the_order_given(state: State) -> None:
    board = Board(state)
    for name, need in (("0", 1), ("1", 2), ("2", 1), ("3", 2)):
        board.add(Job(name), need)
    for name in ("3", "2", "1", "0"):
        board.queue(Job(name))
    order = [found[0].name for free in (8, 8, 1, 8) if (found := board.take(free)) is not None]
    assert order == ["1", "3", "0", "2"]
    assert board.take(8) is None


def test_jobs_and_attempts_are_as_they_were_after_a_restart(tmp_path: Path) -> None:
    first = State(tmp_path / "state.db")
    first.save(Job("0", "failed", "exit", 1, cached=True))
    first.set_meta("note:0", "why")
    one = first.intend("0", "n1", (0, 1), 2)
    first.commit()
    two = first.intend("0", "n2", (0,), 1)
    assert two.name == "0-2"
    first.close()
    again = State(tmp_path / "state.db")
    assert again.jobs() == {"0": Job("0", "failed", "exit", 1, cached=True)}
    assert again.open_attempts() == [one], "what wasn't committed is forgotten"
    assert again.meta("note:0") == "why"
    again.close_attempt(one, "ended", 3.0)
    again.commit()
    assert (again.open_attempts(), again.last_over("0"), again.busy_seconds()) == ([], one, 6.0)
    again.close()
