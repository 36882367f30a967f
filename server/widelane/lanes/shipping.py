"""Makes the two texts that a machine is started with: what all lanes share, then what is the lane's own."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from importlib import resources

_STORE = ("widelane.runner.host", ("store.py", "bucket.py"))
_SHARED = ("widelane.lanes", ("hostside.py",))


@cache
def bootstrap_of(package: str) -> str:
    """The bootstrap of a lane's package behind the store's clients and the part that all lanes share, as one module.

    `package` is the dotted name of the lane; its `bootstrap.py` may import nothing of this program but names
    of `lanes/hostside.py` and `runner/host/store.py`.
    """
    files = [(place, name) for place, names in (_STORE, _SHARED) for name in names]
    return compose(_text(place, name) for place, name in [*files, (package, "bootstrap.py")])


@cache
def script_of(package: str, name: str) -> str:
    """A lane's start-up script with the part that all of them share."""
    return _text("widelane.lanes", "hostside.sh") + _text(package, name)


def compose(texts: Iterable[str]) -> str:
    """The modules behind each other, without the imports that only hold while they are several files."""
    return "from __future__ import annotations\n\n" + "\n\n\n".join(map(_alone, texts))


def _alone(text: str) -> str:
    lines = text.splitlines(keepends=True)
    own = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and _stays_behind(node)]
    for node in sorted(own, key=lambda node: node.lineno, reverse=True):
        del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines).strip() + "\n"


def _stays_behind(node: ast.ImportFrom) -> bool:
    module = node.module or ""
    return node.level > 0 or module == "__future__" or module.partition(".")[0] == "widelane"


def _text(package: str, name: str) -> str:
    return (resources.files(package) / name).read_text(encoding="utf-8")
