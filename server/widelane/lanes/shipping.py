"""Makes the two texts that a machine is started with: what all lanes share, then what is the lane's own."""

from __future__ import annotations

import ast
from functools import cache
from importlib import resources

_SHARED = "widelane.lanes.hostside"


@cache
def bootstrap_of(package: str) -> str:
    """The bootstrap of a lane's package with the part that all of them share, as one module.

    `package` is the dotted name of the lane; its `bootstrap.py` may import nothing of this program but names
    of `lanes/hostside.py`.
    """
    shared = (resources.files("widelane.lanes") / "hostside.py").read_text(encoding="utf-8")
    own = (resources.files(package) / "bootstrap.py").read_text(encoding="utf-8")
    return compose(shared, own)


@cache
def script_of(package: str, name: str) -> str:
    """A lane's start-up script with the part that all of them share."""
    shared = (resources.files("widelane.lanes") / "hostside.sh").read_text(encoding="utf-8")
    return shared + (resources.files(package) / name).read_text(encoding="utf-8")


def compose(shared: str, own: str) -> str:
    """`own` behind `shared`, without the imports that only hold while they are two files."""
    lines = own.splitlines(keepends=True)
    for node in reversed(ast.parse(own).body):
        if isinstance(node, ast.ImportFrom) and node.module in (_SHARED, "__future__"):
            del lines[node.lineno - 1 : node.end_lineno]
    return shared.rstrip() + "\n\n\n" + "".join(lines)
