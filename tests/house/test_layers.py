"""Who may import whom. The picture is in docs/architecture.md, the rule in pyproject.toml."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib

import pytest

from tests.house.sources import ROOT, ROOTS, imports, modules

CLOUD = ("google", "grpc", "runpod", "paramiko")
"""Slow to import (one to two seconds), and of no use before a lane is walked."""

CLOCK_READS = {"now", "utcnow", "today", "fromtimestamp"}


def _under(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def test_every_import_between_rooms_goes_downwards():
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    found = subprocess.run(
        [sys.executable, "-c", command, "--no-logo", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_layers_name_every_room():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract for contract in contracts if contract["id"] == "layers"]
    assert layers["exhaustive"]
    named = {room.strip(" ()") for layer in layers["layers"] for room in layer.split("|")}
    assert {module.room for module in modules()} <= named


def test_only_the_server_room_imports_mcp():
    strays = [
        f"{module.place}:{found.line}"
        for module in modules()
        for found in imports(module)
        if module.room != "server" and _under(found.module, "mcp", "mcp_types")
    ]
    assert not strays


def test_cloud_sdks_are_imported_by_lanes_and_store_only():
    strays = [
        f"{module.place}:{found.line} {found.module}"
        for module in modules()
        for found in imports(module)
        if module.room not in {"lanes", "store"} and _under(found.module, *CLOUD)
    ]
    assert not strays


def test_cloud_sdks_are_imported_when_they_are_needed_and_not_before():
    eager = [
        f"{module.place}:{found.line} {found.module}"
        for module in modules()
        for found in imports(module)
        if found.eager and _under(found.module, *CLOUD)
    ]
    assert not eager


@pytest.mark.parametrize("room", ["models", "router"])
def test_pure_rooms_read_no_clock_and_open_no_file(room: str):
    calls = [
        f"{module.place}:{node.lineno} {ast.unparse(node.func)}"
        for module in modules()
        if module.room == room
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        if (isinstance(node.func, ast.Name) and node.func.id in {"open", "input", "print"})
        or (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in CLOCK_READS
            and ast.unparse(node.func.value) in {"datetime", "date", "datetime.datetime", "datetime.date"}
        )
    ]
    assert not calls


def test_what_is_shipped_to_hosts_needs_the_standard_library_only():
    strays = [
        f"{module.place}:{found.line} {found.module}"
        for module in modules()
        if _under(module.name, "widelane.runner.host")
        for found in imports(module)
        if not found.module.startswith(".") and found.module.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert not strays


def test_the_three_roots_stay_one_namespace():
    roots = [root / "widelane" / "__init__.py" for root in ROOTS]
    assert not [str(path) for path in roots if path.exists()]


def test_every_package_has_an_init_with_a_docstring():
    missing = []
    for root in ROOTS:
        for folder in {path.parent for path in (root / "widelane").rglob("*.py")} - {root / "widelane"}:
            init = folder / "__init__.py"
            if not init.exists() or not ast.get_docstring(ast.parse(init.read_text())):
                missing.append(str(folder.relative_to(ROOT)))
    assert not missing
