from __future__ import annotations

import re

import pytest

from widelane.reports.paper import Paper, cells, duration, plural


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (0, "0 s"),
        (30 / 3600, "30 s"),
        (8 / 60, "8 min"),
        (1.3333, "1 h 20 min"),
        (8.1333, "8 h 08 min"),
        (25, "25 h 00 min"),
    ],
)
def test_hours_are_said_as_people_say_them(hours: float, said: str) -> None:
    assert duration(hours) == said


def test_one_is_singular_and_thousands_are_grouped() -> None:
    assert (plural(1, "unit"), plural(2, "unit"), plural(10_000, "unit")) == ("1 unit", "2 units", "10,000 units")


def test_wide_and_combining_characters_are_counted_in_columns() -> None:
    assert cells("幅") == 2
    assert cells("e\u0301") == 1
    assert cells("\x1b[31mred\x1b[0m") == 3


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_a_table_keeps_to_the_columns_and_aligns(columns: int) -> None:
    zones = "us-central1-a,c,f europe-west4-a,b asia-northeast1-b us-east5-b"
    lines = Paper(columns=columns).table((">width", "zones"), [("8", zones), ("16", "x")])
    assert max(cells(line) for line in lines) <= columns
    assert lines[1].startswith("      8  us-central1-a,c,f")
    assert lines[-1] == "     16  x"


def test_colour_adds_paint_and_changes_no_text() -> None:
    plain, painted = Paper(), Paper(colour=True)
    rows = [("8", plain.paint("yes", "good")), ("4", "no")]
    painted_rows = [("8", painted.paint("yes", "good")), ("4", "no")]
    with_colour = painted.table((">width", "quota"), painted_rows)
    assert any("\x1b[32m" in line for line in with_colour)
    assert [re.sub(r"\x1b\[\d*m", "", line) for line in with_colour] == plain.table((">width", "quota"), rows)
