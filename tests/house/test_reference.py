"""The reference of the command line is what the commands say of themselves."""

from __future__ import annotations

from tests.house.reference import PAGE, render


def test_the_page_names_every_verb_and_option():
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make docs`"
