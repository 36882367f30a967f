"""Sizes that a module and a function keep to. There is no list of exceptions."""

from __future__ import annotations

import ast
import statistics
import subprocess
import sys

from tests.house.sources import ROOT, ROOTS, FunctionNode, functions, modules

MODULE_LINES = 400
MEDIAN_MODULE_LINES = 150
FUNCTION_LINES = 60
COMPLEXITY = 10
PARAMETERS = 6
ROOT_ENTRIES = 20


def _lines(text: str) -> int:
    return len(text.splitlines())


def _parameters(node: FunctionNode) -> int:
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def _length(node: FunctionNode) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_module_is_longer_than_400_lines():
    long = {module.place: _lines(module.text) for module in modules() if _lines(module.text) > MODULE_LINES}
    assert not long


def test_half_of_the_modules_have_at_most_150_lines():
    sizes = [_lines(module.text) for module in modules() if not module.place.endswith("__init__.py")]
    assert statistics.median(sizes) <= MEDIAN_MODULE_LINES


def test_no_function_is_longer_than_60_lines():
    long = [
        f"{module.place}:{node.lineno} {node.name}: {_length(node)} lines"
        for module in modules()
        for node in functions(module)
        if _length(node) > FUNCTION_LINES
    ]
    assert not long


def test_no_function_takes_more_than_6_parameters():
    wide = [
        f"{module.place}:{node.lineno} {node.name}: {_parameters(node)} parameters"
        for module in modules()
        for node in functions(module)
        if _parameters(node) > PARAMETERS
    ]
    assert not wide


def test_no_function_is_more_complex_than_10():
    """Asked of ruff with every `noqa` ignored."""
    options = ["--ignore-noqa", "--no-cache", "--select", "C901", "--output-format", "concise"]
    budget = ["--config", f"lint.mccabe.max-complexity={COMPLEXITY}"]
    found = subprocess.run(
        [sys.executable, "-m", "ruff", "check", *options, *budget, *ROOTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_root_of_the_checkout_stays_short():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    entries = {name.partition("/")[0] for name in listed.splitlines()}
    assert len(entries) <= ROOT_ENTRIES, sorted(entries)


def test_a_function_longer_than_the_budget_would_be_seen():
    text = "def long(a, b, *, c):\n" + "    a += b\n" * FUNCTION_LINES + "\n"
    (node,) = [node for node in ast.walk(ast.parse(text)) if isinstance(node, FunctionNode)]
    assert _length(node) == FUNCTION_LINES + 1
    assert _parameters(node) == 3
