"""The runner file: the same bytes everywhere, Python 3.9, nothing but the standard library."""

from __future__ import annotations

import ast
import os
import pwd
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.fakes.hostbench import HostBench, shell, unit
from widelane.runner import bundle

HOST = Path(bundle.__file__).parent / "host"
SOURCES = sorted(HOST.rglob("*.py"))


def test_the_runner_file_is_the_same_from_the_same_sources_whatever_their_times(tmp_path: Path) -> None:
    first = bundle.build()
    os.utime(SOURCES[0])
    umask = os.umask(0o077)
    try:
        again = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys; from widelane.runner import bundle; sys.stdout.buffer.write(bundle.build())",
            ],
            capture_output=True,
            check=True,
        )
    finally:
        os.umask(umask)
    assert again.stdout == first
    assert bundle.digest(first) == bundle.digest(again.stdout)
    assert len(first) < 320_000
    (tmp_path / "r.pyz").write_bytes(first)
    with zipfile.ZipFile(tmp_path / "r.pyz") as archive:
        assert len(archive.namelist()) == len(SOURCES) + 1
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(HOST).with_suffix("").as_posix())
def test_host_code_is_python_3_9_and_imports_only_the_standard_library_and_itself(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    assert (
        any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
        or path.stem == "__init__"
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert all(alias.name.partition(".")[0] in sys.stdlib_module_names for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            folder = HOST if path.parent == HOST else path.parents[node.level - 1]
            own = node.module is None or (folder / f"{node.module}.py").exists() or (folder / node.module).is_dir()
            inside = node.level >= 1 and HOST in (folder, *folder.parents) and own
            assert inside or (node.module or "").partition(".")[0] in sys.stdlib_module_names


def test_the_zygote_does_not_load_the_scheduler(runner: Path) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(runner)!r}); import widelane_host.zygote; "
        "heavy = ('widelane_host.', 'sqlite3', 'http', 'concurrent'); "
        "print(*sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    own = {"attempt", "judge", "outputs", "processes", "supervise", "zygote"}
    assert set(loaded) == {f"widelane_host.{name}" for name in own}


def _pythons() -> list[str]:
    """The oldest and the newest interpreters of this machine that may run it, and the one that runs the tests."""
    homes = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    homes += sorted(Path(pwd.getpwuid(os.getuid()).pw_dir, ".pyenv", "versions").glob("*/bin"))
    found = {minor: _first(homes, minor) for minor in (9, 10, 12, 13, 14)}
    return [str(path) for path in found.values() if path is not None] + [sys.executable]


def _first(homes: list[Path], minor: int) -> Path | None:
    for home in homes:
        path = home / f"python3.{minor}"
        if (
            path.exists()
            and subprocess.run([path, "-c", "import sqlite3"], capture_output=True, check=False).returncode == 0
        ):
            return path
    return None


@pytest.mark.parametrize("python", _pythons(), ids=lambda path: Path(path).name)
def test_it_runs_on_every_python_of_this_machine(bench: HostBench, python: str) -> None:
    bench.python = python
    bench.spec([unit(i, shell(f"echo {i} > out{i}"), outputs=[f"out{i}"]) for i in range(3)], setup={"argv": ["true"]})
    assert bench.run()["succeeded"] == 3
    said = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert bench.host()["python"] == said
