from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widelane.reports.clean import clean, clean_line


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://evil\x1b\\link", "link"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x9b31mred", "\\x9b31mred"),
        ("a\rb", "a\nb"),
        ("a\r\nb", "a\nb"),
        ("bell\x07", "bell\\x07"),
        ("user\u202etxt.exe", "user\\u202etxt.exe"),
        ("tab\tstays\nand lines", "tab\tstays\nand lines"),
        ("half \x1b", "half \\x1b"),
        ("größe 幅 ✓", "größe 幅 ✓"),
    ],
)
def test_nothing_that_moves_a_terminal_is_left(given_text: str, shown: str) -> None:
    assert clean(given_text) == shown


@given(st.text(st.characters(codec=None)))
def test_only_newlines_and_tabs_are_left_of_the_control_characters(text: str) -> None:
    left = {character for character in clean(text) if unicodedata.category(character) in ("Cc", "Cs")}
    assert left <= {"\n", "\t"}


@given(st.text())
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


def test_a_line_stays_one_line() -> None:
    assert clean_line("two\n  lines\tand more ") == "two lines and more"
