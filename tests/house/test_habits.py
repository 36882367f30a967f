"""Habits that a linter has no rule for."""

from __future__ import annotations

import ast
import io
import re
import tokenize

import pytest

from tests.house.sources import ROOT, Module, imports, modules, suite, tracked

WAIVER = re.compile(r"#\s*(?:noqa|type:\s*ignore|pyright:\s*ignore)\b")
EXPLAINED = re.compile(
    r"#\s*(?:noqa:\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*|(?:type|pyright):\s*ignore\[[\w, -]+\])\s*(?:#|-|:)*\s*\w.{5,}"
)
GRAB_BAGS = {"utils", "util", "helpers", "helper", "common", "misc", "shared", "manager", "managers"}

LAST_RESORTS = {"server/widelane/dispatcher/supervisor.py", "server/widelane/server/errors.py"}
"""Where a process that serves many must outlive the fault of one."""

# Written in two parts, so that this file doesn't name what it looks for.
ELSEWHERE = re.compile(
    "|".join(
        [
            r"(?<![\w.}])/" + r"work/(?:main|shared|\.library)",
            r"(?<![\w.}])/" + r"root/",
            r"(?<![\w.}])/" + r"(?:home|Users)/\w+/",
            r"/tmp/" + r"(?:bash_jobs|contracts|piplist)",
            r"registry\." + "npmjs",
            r"(?:files\.)?python" + r"hosted\.org",
            r"pypi\." + r"org",
            r"deb\." + r"debian",
            r"/opt/" + r"(?:wheels|pypi)",
        ]
    )
)


def _comments(module: Module) -> list[tuple[int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


def test_every_waiver_names_its_rule_and_its_reason():
    bare = [
        f"{module.place}:{line} {comment}"
        for module in (*modules(), *suite())
        for line, comment in _comments(module)
        if WAIVER.search(comment) and not EXPLAINED.search(comment)
    ]
    assert not bare


@pytest.mark.parametrize(
    ("comment", "fine"),
    [
        ("# type: ignore", False),
        ("# noqa", False),
        ("# type: ignore[arg-type]", False),
        ("# noqa: BLE001", False),
        ("# type: ignore[arg-type]  # the stub lacks the overload", True),
        ("# noqa: BLE001 - the supervisor outlives any lane", True),
    ],
)
def test_a_waiver_is_explained_by_what_follows_its_code(comment: str, fine: bool):
    assert bool(EXPLAINED.search(comment)) is fine


def test_no_module_is_a_grab_bag():
    bags = [module.place for module in modules() if GRAB_BAGS & set(module.name.split("."))]
    assert not bags


def _swallows(node: ast.AST) -> bool:
    """Whether a handler takes any exception and doesn't raise it again."""
    if not isinstance(node, ast.ExceptHandler):
        return False
    caught = ast.unparse(node.type).strip("()").split(", ") if node.type else ["BaseException"]
    last = node.body[-1]
    return bool({"Exception", "BaseException"} & set(caught)) and not (isinstance(last, ast.Raise) and last.exc is None)


def test_nothing_but_a_last_resort_swallows_every_exception():
    broad = [
        f"{module.place}:{node.lineno}"
        for module in modules()
        if module.place not in LAST_RESORTS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler) and _swallows(node)
    ]
    assert not broad


def test_only_the_command_line_prints():
    prints = [
        f"{module.place}:{node.lineno}"
        for module in modules()
        if module.room != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not prints


def test_tests_use_fakes_and_no_mocks():
    mocks = [
        f"{module.place}:{found.line}"
        for module in suite()
        for found in imports(module)
        if found.module.startswith(("unittest.mock", "mock"))
    ]
    assert not mocks


def test_nothing_tracked_names_a_place_of_one_machine():
    named = []
    for name in tracked():
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        named += [
            f"{name}:{number} {found.group()}"
            for number, line in enumerate(text.splitlines(), 1)
            if (found := ELSEWHERE.search(line))
        ]
    assert not named


def test_nothing_tracked_is_large():
    large = {name: size for name in tracked() if (size := (ROOT / name).stat().st_size) > 1_000_000}
    assert not large
