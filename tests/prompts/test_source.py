from __future__ import annotations

import pytest

from widelane.errors import TableError
from widelane.prompts.source import Rendered, Source, join, pick, render, source


def test_a_source_is_filled_and_its_values_are_kept_in_order() -> None:
    page = Source("page", "Widths ${widths}, then ${cap}; again ${widths}.")
    done = render(page, {"widths": "`8`, `4`", "cap": "`16`"})
    assert done.text == "Widths `8`, `4`, then `16`; again `8`, `4`."
    assert done.values == (("widths", "`8`, `4`"), ("cap", "`16`"), ("widths", "`8`, `4`"))


def test_a_place_without_a_value_is_refused_with_its_line() -> None:
    page = Source("page", "one\ntwo ${missing}\n")
    with pytest.raises(TableError) as refused:
        render(page, {})
    assert (refused.value.file, refused.value.row, refused.value.column) == ("prompts/page.md", 2, "missing")


def test_a_value_without_a_place_is_refused() -> None:
    with pytest.raises(TableError, match="cap"):
        render(Source("page", "nothing here"), {"cap": "`16`"})


def test_words_fill_places_without_becoming_values() -> None:
    done = render(Source("page", "${cap} ${draft}"), {"cap": "`16`"}, {"draft": "`none`"})
    assert (done.text, done.values) == ("`16` `none`", (("cap", "`16`"),))


def test_a_page_in_a_page_brings_its_values_along() -> None:
    inner = join((Rendered("a `1`\n", (("a", "`1`"),)), Rendered("b `2`\n", (("b", "`2`"),))))
    done = render(Source("page", "${head}: ${inner}"), {"head": "`0`", "inner": inner})
    assert done.text == "`0`: a `1`\nb `2`"
    assert [name for name, _ in done.values] == ["head", "a", "b"]


def test_dollars_and_braces_of_commands_are_left_alone() -> None:
    text = "run {model} $HOME ${SHELL} $${x"
    assert render(Source("page", text), {}).text == text


def test_pick_keeps_what_the_source_has_places_for() -> None:
    assert pick(Source("page", "${a}"), {"a": "1", "b": "2"}) == {"a": "1"}


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(TableError, match="nowhere"):
        source("nowhere")
