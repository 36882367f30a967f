"""Mutation testing of the router: a copy of it in which each mutant meets the tests of the router.

python -m tests.fakes.mutation FOLDER [PROCESSES] [PATTERN...]

Begins anew in FOLDER, which keeps what was found (`mutmut show NAME` there); a pattern takes part of the mutants, as
"widelane.router.spot*". Prints the survivors and the score.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOTS = ("server", "tools", "prompts")
KEPT_OUT = ("test_mutation.py",)
SETTINGS = """\
[tool.mutmut]
source_paths = ["src/"]
only_mutate = ["src/widelane/router/*"]
pytest_add_cli_args_test_selection = ["tests/router"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-x"]
use_git_change_detection = false
track_dependencies = false

[tool.pytest.ini_options]
addopts = "--import-mode=importlib -q"
pythonpath = ["."]
timeout = 120
markers = ["slow: as in the project", "weekly: as in the project"]
"""
CONFTEST = '''\
"""The same examples for every mutant, and nothing remembered from before it; the router touches no world to guard."""

import gc

import pytest
from hypothesis import settings

from widelane.router import Bench, commands, placeholders

settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
settings.load_profile("mutants")


def pytest_collection_finish(session: pytest.Session) -> None:
    commands.read_command.cache_clear()
    placeholders._names.cache_clear()
    for bench in [found for found in gc.get_objects() if isinstance(found, Bench)]:
        for memory in (bench.rungs, bench.notes, bench.sheets):
            memory.clear()
'''


def lay_out(repo: Path, folder: Path) -> None:
    """The three roots as one package, and the tests of the router with what they import."""
    package, suite = folder / "src" / "widelane", folder / "tests"
    ignored = shutil.ignore_patterns("__pycache__")
    for stale in (package, suite, folder / "mutants"):
        shutil.rmtree(stale, ignore_errors=True)
    for root in ROOTS:
        shutil.copytree(repo / root / "widelane", package, dirs_exist_ok=True, ignore=ignored)
    shutil.copytree(
        repo / "tests" / "router", suite / "router", ignore=shutil.ignore_patterns("__pycache__", *KEPT_OUT)
    )
    (suite / "fakes").mkdir()
    shutil.copy(repo / "tests" / "fakes" / "benches.py", suite / "fakes")
    (suite / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")


def mutate(folder: Path, processes: int, patterns: tuple[str, ...] = ()) -> None:
    """Try every mutant that was not tried yet."""
    command = ["run", "--max-children", str(processes), *patterns]
    _mutmut(folder, *command)


def score(folder: Path) -> tuple[int, int]:
    """(killed, tried). A mutant that never ends is killed; one that no test reaches is not."""
    _mutmut(folder, "export-cicd-stats")
    found = json.loads((folder / "mutants" / "mutmut-cicd-stats.json").read_text(encoding="utf-8"))
    killed = found["killed"] + found["timeout"] + found.get("segfault", 0)
    return killed, killed + found["survived"] + found["no_tests"] + found["suspicious"]


def survivors(folder: Path) -> list[str]:
    """Names of the mutants that no test noticed."""
    told = _mutmut(folder, "results")
    return [line.strip() for line in told.splitlines() if line.strip().endswith((": survived", ": no tests"))]


def _mutmut(folder: Path, *arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTEST_ADDOPTS"}}
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise AssertionError(f"mutmut {arguments[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    return done.stdout


def main(folder: str, processes: str = "1", *patterns: str) -> None:
    repo, place = Path(__file__).resolve().parents[2], Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    lay_out(repo, place)
    mutate(place, int(processes), patterns)
    print("\n".join(survivors(place)))
    killed, tried = score(place)
    print(f"{killed} of {tried} mutants killed, {killed / tried:.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
