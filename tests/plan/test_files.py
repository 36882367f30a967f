"""Reading a plan from a file, and files that hold none."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from widelane import plan
from widelane.errors import PlanError, Problem
from widelane.plan.parse import SIZE_LIMIT

PLAN = "widelane: 1\nphases:\n- name: a\n"


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Run as a user without rights: root may read every file."""
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(me)


def _refused(path: Path) -> Problem:
    with pytest.raises(PlanError) as caught:
        plan.read(path)
    (problem,) = caught.value.problems
    assert problem.origin == str(path)
    assert problem.fix
    return problem


def test_a_file_is_read_with_its_name_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "plan.yaml").write_text(PLAN, encoding="utf-8")
    parsed = plan.read(tmp_path / "plan.yaml")
    assert (parsed.origin, parsed.folder) == (str(tmp_path / "plan.yaml"), str(tmp_path))
    monkeypatch.chdir(tmp_path)
    parsed = plan.read("plan.yaml")
    assert (parsed.origin, parsed.folder) == ("plan.yaml", str(tmp_path))


def test_a_markdown_file_is_read_by_its_block(tmp_path: Path):
    path = tmp_path / "plan.md"
    path.write_bytes(f"# Plan\r\n\r\n```yaml widelane\r\n{PLAN}```\r\n".encode())
    assert plan.read(path).marks.place("phases", 0, "name") == (6, 3)


def test_a_missing_file_is_told_with_the_one_that_is_there(tmp_path: Path):
    (tmp_path / "plan.md").write_text(PLAN, encoding="utf-8")
    problem = _refused(tmp_path / "pln.md")
    assert (problem.code, problem.fix) == ("no_file", f"Did you mean `{tmp_path / 'plan.md'}`?")


def test_a_missing_folder_is_told(tmp_path: Path):
    assert _refused(tmp_path / "no" / "plan.md").code == "no_file"


def test_a_folder_is_no_plan(tmp_path: Path):
    assert _refused(tmp_path).message == "This is a folder."


@pytest.mark.parametrize("name", ["a\x00b", "x" * 5000, ""])
def test_a_name_that_no_file_can_have_is_told(name: str, tmp_path: Path):
    assert _refused(tmp_path / name).code == "no_file"


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"\x80\x02}q\x00", (1, 1)),
        (b"widelane: 1\ntask: caf\xe9\n", (2, 10)),
        (b"widelane: 1\r\n# \xc3\xa9\xc3\xa9\xff\r\n", (2, 5)),
        (b"\xff\xfew\x00i\x00", (1, 1)),
    ],
    ids=["pickle", "latin-1", "after two-byte letters", "utf-16"],
)
def test_a_file_that_is_not_utf_8_is_told_where(data: bytes, place: tuple[int, int], tmp_path: Path):
    path = tmp_path / "plan.yaml"
    path.write_bytes(data)
    problem = _refused(path)
    assert (problem.code, (problem.line, problem.column)) == ("not_text", place)


@pytest.mark.parametrize("name", ["plan.yaml", "plan"])
def test_a_binary_file_that_happens_to_be_utf_8_is_told_where(name: str, tmp_path: Path):
    path = tmp_path / name
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
    problem = _refused(path)
    assert (problem.code, problem.line, problem.column) == ("bad_character", 1, 1)


def test_a_file_larger_than_any_plan_is_not_read_whole(tmp_path: Path):
    path = tmp_path / "weights.yaml"
    path.touch()
    os.truncate(path, 100 * SIZE_LIMIT)
    assert _refused(path).code == "too_large"


def test_a_file_without_permission_is_told(tmp_path: Path):
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN, encoding="utf-8")
    path.chmod(0)
    with _as_nobody():
        assert _refused(path).code == "no_file"


def test_an_empty_file_is_told(tmp_path: Path):
    path = tmp_path / "plan.yaml"
    path.touch()
    assert _refused(path).code == "no_plan"
