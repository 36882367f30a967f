from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from widelane.runner.host import outputs


def test_a_rewrite_of_the_same_bytes_is_fresh(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("x")
    os.utime(out, ns=(0, 0))
    before = outputs.snapshot(tmp_path, ["out"])
    out.write_text("x")
    assert outputs.judge(tmp_path, ["out"], before).reason == ""


def test_a_file_from_the_future_that_was_not_touched_is_stale(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("x")
    os.utime(out, (2**33, 2**33))
    before = outputs.snapshot(tmp_path, ["out"])
    assert outputs.judge(tmp_path, ["out"], before).reason == "output_stale"


def test_nothing_declared_is_nothing_missing(tmp_path: Path) -> None:
    assert outputs.judge(tmp_path, [], {}) == outputs.Verdict("", "", ())


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20)


@given(name=NAMES.filter(lambda name: name not in (".", "..") and len(name.encode()) < 200))
def test_a_file_named_letter_by_letter_is_found_whatever_the_letters(tmp_path_factory: object, name: str) -> None:
    folder = tmp_path_factory.mktemp("o")  # type: ignore[attr-defined]  # hypothesis hides the type
    (folder / name).write_text("x")
    assert outputs.judge(folder, [name], {}).files == (name,)


def test_a_folder_that_cannot_be_made_does_not_matter_before_the_start(tmp_path: Path) -> None:
    outputs.make_folders(tmp_path, ["a/*/b", "c/d/e", "f", "g[1]/h"])
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "c", "d"]
