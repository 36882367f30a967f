"""What is built holds everything that the packages hold, and runs without the checkout."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.house.sources import ROOT, ROOTS

pytestmark = pytest.mark.slow

IMPORT_ALL = """
import importlib, pkgutil, sys
site, packages = sys.argv[1:]
sys.path.insert(0, site)
sys.path.append(packages)
import widelane
names = [found.name for found in pkgutil.walk_packages(widelane.__path__, "widelane.")]
for name in names:
    if name.rpartition(".")[2] != "__main__":
        importlib.import_module(name)
strays = [m.__file__ for n, m in sys.modules.items() if n.startswith("widelane.") and not m.__file__.startswith(site)]
print(len(names), *strays)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel built from that sdist."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)],
        check=True,
        capture_output=True,
        text=True,
    )
    return out


def _package_files() -> set[str]:
    return {
        str(path.relative_to(root))
        for root in ROOTS
        for path in (root / "widelane").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_built_from_the_sdist_holds_every_package_file(built: Path):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == _package_files()


def test_the_wheel_carries_licence_and_entry_point(built: Path):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (entry,) = [name for name in names if name.endswith("entry_points.txt")]
        assert "widelane = widelane.cli.main:main" in archive.read(entry).decode()
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_holds_what_a_rebuild_and_a_test_run_need(built: Path):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", ".ci/setup"} <= held
    assert "tests/conftest.py" in held


def test_a_fresh_install_of_the_wheel_imports_every_module(built: Path, tmp_path: Path):
    (wheel,) = built.glob("*.whl")
    site = tmp_path / "site"
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, str(wheel)],
        check=True,
        capture_output=True,
        text=True,
    )
    # -S leaves out the .pth file of the editable install, so that only the wheel can answer.
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT_ALL, str(site), sysconfig.get_path("purelib")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert found.returncode == 0, found.stderr
    count, *strays = found.stdout.split()
    assert not strays
    assert int(count) > 10
