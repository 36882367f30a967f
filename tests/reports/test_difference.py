"""What diff prints."""

from __future__ import annotations

import pytest

from tests.fakes.benches import make_bench, parsed, phase
from widelane.models.plan import Phase
from widelane.reports.difference import difference_report
from widelane.reports.paper import Paper
from widelane.router import compare, judge

API = Phase(name="judge", gpus=0, after=("generate",), wall_minutes=40.0, command="python judge.py")
CHANGED = """\
REVISE -> PASS
  wall clock  4 h 48 min -> 1 h 20 min
  GPUs held   8.267 GPU-h -> 10.67 GPU-h
  paid lane   at most 8.267 GPU-h -> at most 10.67 GPU-h

generate  REVISE -> PASS
  width       2 -> 8
  wall clock  4 h 08 min -> 1 h 20 min
  GPUs held   8.267 GPU-h -> 10.67 GPU-h
  paid lane   at most 8.267 GPU-h -> at most 10.67 GPU-h
  rung gone   runpod STANDARD any 2
  rung new    gcp FLEX_START a2-ultragpu-8g 8
  rung new    gcp FLEX_START a3-highgpu-8g 8
  rung new    gcp STANDARD a2-ultragpu-8g 8
  rung new    gcp FLEX_START a2-ultragpu-4g 4
  rung new    gcp STANDARD a2-ultragpu-4g 4
  rung new    runpod STANDARD any 8

judge  removed: width 0, 40 min, 0 GPU-h
"""
SAME = """\
PASS -> PASS
  wall clock  1 h 20 min
  GPUs held   10.67 GPU-h
  paid lane   at most 10.67 GPU-h

nothing changed
"""


@pytest.mark.parametrize(("old", "told"), [((phase(width=2), API), CHANGED), ((phase(width=8),), SAME)])
def test_what_changed_is_told_and_nothing_else(old: tuple[Phase, ...], told: str) -> None:
    bench = make_bench(lanes=("gcp", "runpod"))
    first, second = parsed(*old), parsed(phase(width=8))
    found = compare((first.plan, judge(first, bench)), (second.plan, judge(second, bench)), bench.policy)
    assert difference_report(found, Paper()) == told


def test_what_is_not_known_is_called_so() -> None:
    bench = make_bench(lanes=("gcp",))
    first, second = parsed(phase(width=8)), parsed(phase(width=8, gpu_hours=None), phase(name="new", width=8))
    found = compare((first.plan, judge(first, bench)), (second.plan, judge(second, bench)), bench.policy)
    text = difference_report(found, Paper())
    assert "  wall clock  1 h 20 min -> unknown\n" in text
    assert "new  added: width 8, 1 h 20 min, 10.67 GPU-h\n" in text
