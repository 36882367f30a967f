"""The reference pages are what the program says of itself."""

from __future__ import annotations

import pytest

from tests.house.reference import DOCS, PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_made_from_the_program_names_all_that_it_has(page: str):
    assert (DOCS / page).read_text(encoding="utf-8") == PAGES[page](), "run `make docs`"
