"""The source tree as the house tests see it: modules, their syntax trees, and what they import."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ROOTS = (ROOT / "server", ROOT / "tools", ROOT / "prompts")

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One source file; `name` is dotted (`widelane.router.width`), `place` relative to the checkout."""

    name: str
    place: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The first name under `widelane`."""
        return self.name.split(".")[1]


@dataclass(frozen=True)
class Import:
    """One imported module and where; `eager` when it happens as the file is loaded."""

    module: str
    line: int
    eager: bool


def _read(path: Path, base: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = list(path.relative_to(base).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return Module(".".join(parts), str(path.relative_to(ROOT)), text, ast.parse(text, str(path)))


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the three source roots."""
    return tuple(_read(path, base) for base in ROOTS for path in sorted(base.rglob("*.py")))


@cache
def suite() -> tuple[Module, ...]:
    """Every Python file under tests/."""
    return tuple(_read(path, ROOT) for path in sorted((ROOT / "tests").rglob("*.py")))


def functions(module: Module) -> Iterator[FunctionNode]:
    """Every function and method of a module, nested ones included."""
    for node in ast.walk(module.tree):
        if isinstance(node, FunctionNode):
            yield node


def imports(module: Module) -> Iterator[Import]:
    """Every import of a module, with whether loading the module runs it."""
    yield from _imports(module.tree.body, eager=True)


def _imports(body: list[ast.stmt], *, eager: bool) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, eager)
        elif isinstance(node, ast.ImportFrom):
            yield Import("." * node.level + (node.module or ""), node.lineno, eager)
        else:
            inner = eager and not isinstance(node, FunctionNode) and not _only_for_types(node)
            yield from _imports(list(_statements(node)), eager=inner)


def _statements(node: ast.stmt) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _only_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


@cache
def tracked() -> tuple[str, ...]:
    """Files of this checkout as git lists them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
    return tuple(name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file())
