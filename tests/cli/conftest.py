from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Ran = subprocess.CompletedProcess[str]
Widelane = Callable[..., Ran]


@pytest.fixture
def widelane(tmp_path: Path) -> Widelane:
    """Runs the command line as a process of its own, in an empty folder."""

    def run(*arguments: str, cwd: Path = tmp_path, stdin: str = "", **env: str) -> Ran:
        return subprocess.run(
            [sys.executable, "-m", "widelane.cli", *arguments],
            cwd=cwd,
            env=os.environ | env,
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=60,
        )

    return run


@pytest.fixture
def widelane_home(own_world: Path) -> Path:
    """Where runs would be kept."""
    return own_world / "widelane"


@pytest.fixture
def capture(repo: Path) -> Path:
    """The plan of the capture example."""
    return repo / "examples" / "capture" / "plan.md"
