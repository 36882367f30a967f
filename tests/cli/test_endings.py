"""How the program ends, whatever happens."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from widelane.cli.crash import Net
from widelane.cli.main import run, verbs
from widelane.errors import BusyError, PlanError, Problem

Widelane = Callable[..., subprocess.CompletedProcess[str]]


def test_a_crash_of_ours_is_a_3_and_keeps_its_traceback(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Net() as net:
        raise ZeroDivisionError("nobody thought of this")
    written = capsys.readouterr()
    assert (net.code, written.out) == (3, "")
    first, fix = written.err.splitlines()
    found = re.fullmatch(r"error\[crash\]: widelane failed at ZeroDivisionError; the traceback is in (.*)", first)
    assert found is not None
    assert "nobody thought of this" in Path(found[1]).read_text(encoding="utf-8")
    assert fix.startswith("  fix: ")


def test_every_problem_of_a_plan_is_told_with_place_and_fix(capsys: pytest.CaptureFixture[str]) -> None:
    problems = (Problem("plan.md", 3, 5, "unknown_key", "no such key", "width: 8"), Problem("plan.md", 9, 1, "x", "y"))
    with Net() as net:
        raise PlanError(problems)
    assert net.code == 2
    assert capsys.readouterr().err.splitlines() == [
        "error[unknown_key]: plan.md:3:5: no such key",
        "  fix: width: 8",
        "error[x]: plan.md:9:1: y",
    ]


def test_a_message_from_outside_can_not_move_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Net() as net:
        raise BusyError("held by \x1b[2Jsomeone", hint="wait\x07")
    assert net.code == 1
    assert capsys.readouterr().err == "error[busy]: held by someone\n  fix: wait\\x07\n"


def test_a_verb_that_is_misspelt_is_a_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["paln"]) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert "paln" in written.err
    assert "widelane --help" in written.err


def test_help_and_version_are_a_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert run(["--version"]) == 0
    assert re.search(r"^widelane \d+\.\d+", capsys.readouterr().out, re.MULTILINE)


def test_a_reader_that_goes_away_leaves_no_complaint(tmp_path: Path) -> None:
    reader = subprocess.Popen([sys.executable, "-c", ""], stdin=subprocess.PIPE)
    reader.wait()
    assert reader.stdin is not None
    done = subprocess.run(
        [sys.executable, "-m", "widelane.cli", "--version"],
        stdout=reader.stdin,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        check=False,
        timeout=60,
    )
    reader.stdin.close()
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("verb", verbs.list_commands(None))  # type: ignore[arg-type]  # the context isn't looked at
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([verb, "--help"]) == 0
    assert f"widelane {verb}" in capsys.readouterr().out


def test_a_verb_loads_nothing_that_only_others_need(tmp_path: Path) -> None:
    seen = (
        "import sys; from widelane.cli.main import verbs; verbs.get_command(None, 'serve');"
        "print(*[n for n in ('rich', 'mcp', 'google', 'grpc') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", seen], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
