"""The main job: the capture example through a real dispatch, at every width, as processes of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

WIDTHS = {
    "eight-is-free.yaml": (8, "a2-ultragpu-8g"),
    "eight-is-gone.yaml": (4, "a2-ultragpu-4g"),
    "two-is-left.yaml": (2, "a2-ultragpu-2g"),
    "one-is-left.yaml": (1, "a2-ultragpu-1g"),
}
"""Realized width and machine type of the capture phase, by scenario."""


def widelane(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "widelane.cli", *arguments],
        cwd=cwd,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )


def outcomes(phase: dict[str, Any]) -> list[tuple[int, str]]:
    return [(row["width"], row["outcome"]) for row in phase["attempts"]]


@pytest.fixture
def hurried(repo: Path, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A shipped scenario with a faster clock, so that less time goes by in waiting."""

    def write(name: str) -> Path:
        text = (repo / "examples" / "scenarios" / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(re.sub(r"rate: \d+", "rate: 120", text), encoding="utf-8")
        return tmp_path / name

    yield write
    widelane("sim", "stop", cwd=tmp_path)


@pytest.mark.parametrize("scenario", WIDTHS)
def test_the_merged_result_is_the_same_at_every_realized_width(
    scenario: str, hurried: Callable[[str], Path], repo: Path, tmp_path: Path
) -> None:
    width, machine_type = WIDTHS[scenario]
    examples = repo / "examples"
    plan, sim = examples / "capture" / "plan.md", hurried(scenario)

    done = widelane("dispatch", str(plan), "--sim", str(sim), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    phases = {phase["name"]: phase for phase in answer["phases"]}
    capture = phases["capture"]
    assert answer["state"] == "succeeded"
    assert (capture["requested_width"], capture["realized_width"], capture["machine_type"]) == (8, width, machine_type)
    assert capture["units"]["succeeded"] == 20
    assert outcomes(capture)[-1] == (width, "granted")
    assert {outcome for row_width, outcome in outcomes(capture) if row_width > width} <= {"capacity"}
    assert phases["neighbours"]["realized_width"] == min(width, 4)
    assert phases["report"]["lane"] == "local"

    pulled = widelane("pull", answer["run_id"], "--to", "out", cwd=tmp_path)
    assert pulled.returncode == 0, pulled.stderr
    expected = json.loads((examples / "capture" / "expected.json").read_text(encoding="utf-8"))
    files = {path.name: path for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert json.loads(files["merged.json"].read_text(encoding="utf-8")) == expected["merged"]
    assert json.loads(files["neighbours.json"].read_text(encoding="utf-8")) == expected["neighbours"]
    assert "Best on unseen text: fivegram." in files["report.md"].read_text(encoding="utf-8")
