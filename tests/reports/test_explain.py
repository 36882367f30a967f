"""What a verdict counts, as people read it: the numbers of each line agree with each other and with the verdict."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.benches import axes, judged, phase, single
from widelane.errors import InputError
from widelane.models.plan import Arm, NarrowBecause, NarrowKind, Phase
from widelane.reports.chart import width_chart
from widelane.reports.explain import explanation
from widelane.reports.paper import Paper

SAMPLE = """\
generate  PASS  width 8, recommended 8
  units       20 units = model 2 x draw_set 10
  work        8 h on one group of 1 GPU, 24 min a unit
  groups      8 GPUs / 1 a unit = 8, of which 8 work at once
  waves       20 units on 8 groups: 3 waves, 20 of 24 places filled, 83%
  wall clock  8 min set-up + 1 h 12 min run + 0 s serial end = 1 h 20 min; waiting for a machine and its boot are not in
              it
  bound by    the last wave, which is not full
  at best     no order of the units takes less than 1 h 20 min at this width
  efficiency  8 GPU-h of work / (8 GPUs x 1.333 h held = 10.67 GPU-h) = 75%
  gain        48 min less than width 4, 38%
  speed-up    6.1 times as fast as width 1; 61 times one group is the most that any width gives
  saturation  beyond 20 GPUs none has a unit, or set-up takes longer than work
  on spot     1 h 31 min expected

  width  wall clock                                            efficiency
      1  ########################################  8 h 08 min  ##########  98%
      2  ####################                      4 h 08 min  ##########  97%
      4  ##########                                2 h 08 min  #########   94%
      8  #######                                   1 h 20 min  ########    75%  recommended
"""


def _explained(one: Phase, columns: int = 120) -> str:
    return explanation(one, judged(one), Paper(columns=columns))


def test_the_sample_is_explained_line_by_line() -> None:
    assert _explained(phase(width=8)) == SAMPLE


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        (
            {"unit_minutes": (180.0, 60.0, 180.0, 60.0)},
            "work        8 h on one group of 1 GPU, 2 h 00 min a unit on average, 3 h 00 min the longest",
        ),
        (
            {"unit_minutes": (180.0, 60.0, 180.0, 60.0)},
            "dealt out   6 h 00 min if the units were shared out before, instead of pulled",
        ),
        ({"unit_minutes": 6.0, "tail_minutes": 30.0}, "bound by    the serial end, which no width shortens"),
        (
            {"gpu_hours": 8.0, "width": 8},
            "groups      8 GPUs / 1 a unit = 8, of which 4 work at once, 4 GPUs without a unit",
        ),
        (
            {"gpu_hours": 8.0, "gpus_per_shard": 2, "width": 8},
            "work        4 h on one group of 2 GPUs, 1 h 00 min a unit",
        ),
        (
            {"gpu_hours": 8.0, "checkpoint_minutes": 20.0, "checkpoint_write_minutes": 5.0},
            "checkpoint  one every 45.7 min loses least on spot",
        ),
        (
            {"gpu_hours": 8.0, "narrow_because": NarrowBecause(kind=NarrowKind.LICENCE_SEATS, seats=2)},
            "bound by    what narrow_because says",
        ),
    ],
)
def test_each_term_is_told_where_it_counts(fields: dict[str, Any], line: str) -> None:
    given: dict[str, Any] = {
        "axes": axes(x=4),
        "command": "run {x}",
        "outputs": (),
        "gpu_hours": None,
        "setup_minutes": 0.0,
        "width": 2,
    }
    assert f"  {line}\n" in _explained(phase(**{**given, **fields}))


def test_arms_and_work_that_hardly_ends_on_spot_are_told() -> None:
    arms = (Arm(name="a", command="run {model} {draw_set}"), Arm(name="b", command="go {model} {draw_set}"))
    assert "40 units = of arms a, b\n" in _explained(phase(width=8, command=None, outputs=(), arms=arms))
    assert "  on spot     hardly ever ends\n" in _explained(single(gpu_hours=150.0))


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (Phase(name="judge", gpus=0, wall_minutes=40.0), "judge  PASS\n  no GPU; 40 min, as wall_minutes says\n"),
        (Phase(name="judge", gpus=0), "judge  PASS\n  no GPU\n"),
        (phase(gpu_hours=None), "generate  REVISE\n  no numbers at this width: no_estimate\n"),
        (phase(width=3), "generate  REVISE\n  no numbers at this width: off_ladder\n"),
    ],
)
def test_a_phase_without_numbers_says_why(one: Phase, line: str) -> None:
    assert _explained(one) == line
    if one.width is None:
        with pytest.raises(InputError, match="has no numbers to draw"):
            width_chart(judged(one))


def _hours(text: str) -> float:
    found = re.fullmatch(r"(?:(\d+) h )?(?:(\d+) min)?(?:(\d+) s)?", text)
    assert found is not None, text
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return hours + minutes / 60 + seconds / 3600


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 60),
    st.floats(3.0, 90.0),
    st.floats(0.0, 60.0),
    st.floats(0.0, 60.0),
    st.sampled_from([1, 2, 4, 8]),
    st.sampled_from([60, 80, 120]),
)
def test_the_parts_of_a_line_make_up_its_whole(
    units: int, minutes: float, setup: float, tail: float, width: int, columns: int
) -> None:
    fields: dict[str, Any] = {"axes": axes(x=units), "command": "run {x}", "outputs": (), "gpu_hours": None}
    one = phase(unit_minutes=minutes, setup_minutes=setup, tail_minutes=tail, width=width, **fields)
    text = " ".join(_explained(one, columns).split())
    parts = re.search(r"wall clock (.+?) set-up \+ (.+?) run \+ (.+?) serial end = (.+?);", text)
    assert parts is not None
    first, run, last, whole = (_hours(part) for part in parts.groups())
    assert first + run + last == pytest.approx(whole, abs=2.1 / 60)
    useful = re.search(r"efficiency ([\d.]+) GPU-h of work / \((\d+) GPUs x ([\d.]+) h .*? = (\d+)%", text)
    assert useful is not None
    work, gpus, held, share = (float(part) for part in useful.groups())
    assert work / (gpus * held) == pytest.approx(share / 100, abs=0.006)
    assert work == pytest.approx(units * minutes / 60, rel=0.01)


def test_a_picture_has_a_bar_of_each_kind_for_each_width_and_nothing_that_runs_or_loads() -> None:
    verdict = judged(phase(width=8))
    drawn = width_chart(verdict)
    assert drawn == width_chart(verdict)
    root = ET.fromstring(drawn)
    bars = [node for node in root.iter("{http://www.w3.org/2000/svg}g") if node.get("class") == "bar"]
    assert len(bars) == 2 * len(verdict.widths)
    said = {node.text for node in root.iter() if node.text}
    assert {"generate", "GPUs", "1", "2", "4", "8", "8.13", "1.33", "75"} <= said
    assert "<script" not in drawn
    assert "<!--" not in drawn
    assert set(re.findall(r"https?://[^\"'\s]+", drawn)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }


def test_a_picture_leaves_no_finder_that_every_later_import_would_warn_of() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "pygal"]:
        del sys.modules[name]
    width_chart(judged(phase(width=8)))
    assert all(hasattr(finder, "find_spec") for finder in sys.meta_path)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygal", None)
    with pytest.raises(InputError) as caught:
        width_chart(judged(phase(width=8)))
    assert caught.value.hint == "install widelane[web]"
