"""explain-error on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

Widelane = Callable[..., subprocess.CompletedProcess[str]]
BALANCE = '{"title": "Payment Required", "status": 402, "detail": "insufficient balance"}'


def test_an_answer_in_a_file_is_explained_as_json(widelane: Widelane, tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text(BALANCE)
    done = widelane("explain-error", "runpod", "answer.json", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert [told[key] for key in ("class", "scope", "action")] == ["quota", "lane", "next_lane"]
    assert told["reason"]


def test_an_answer_on_stdin_is_explained_in_words(widelane: Widelane) -> None:
    done = widelane("explain-error", "slurm", stdin="PENDING Resources\n")
    assert done.returncode == 0
    assert done.stdout.startswith("capacity  scope rung")
    assert "wait: " in done.stdout


def test_an_answer_that_nobody_knows_is_unknown_and_no_failure_of_ours(widelane: Widelane) -> None:
    done = widelane("explain-error", "gcp", "-", "--json", stdin="the moon is in the wrong house")
    assert done.returncode == 0
    assert json.loads(done.stdout)["class"] == "unknown"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("gcp",), "empty"),
        (("azure",), "azure"),
        (("gcp", "nowhere.json"), "nowhere.json"),
        (("gcp", "."), "directory"),
        ((), "LANE"),
    ],
)
def test_what_can_not_be_judged_is_bad_input(widelane: Widelane, arguments: tuple[str, ...], word: str) -> None:
    done = widelane("explain-error", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert word in done.stderr


def test_bytes_that_are_no_text_are_bad_input(widelane: Widelane, tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(Path(sys.executable).read_bytes()[:4096])
    done = widelane("explain-error", "ssh", "core")
    assert done.returncode == 2
    assert "not_an_answer" in done.stderr


def test_nothing_is_written_and_no_configuration_is_needed(widelane: Widelane, widelane_home: Path) -> None:
    done = widelane("explain-error", "ssh", stdin="rc=255 Permission denied (publickey).")
    assert done.returncode == 0
    assert not widelane_home.exists()
