"""Python that is sent to a host: modules of ours by name, as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from widelane.transport.remote import frame

START = (
    "import sys;v=sys.version_info;"
    'v<(3,9) and sys.exit("widelane needs Python 3.9, this is %d.%d"%v[:2]);'
    "i=sys.stdin.buffer;exec(i.read(int(i.readline())))"
)
"""Reads the frame from stdin and runs it. Without quotes that a shell could take: it stands between single ones."""


@dataclass(frozen=True, slots=True)
class Program:
    """Modules in the order in which they import each other; the last one has the entries.

    An entry takes a `frame.Call` and returns what JSON can hold. Modules import the standard library, `frame` and
    those before them, by their full names, and run on Python 3.9.
    """

    modules: tuple[str, ...]

    def sources(self) -> list[list[str]]:
        """Names and texts."""
        return [[name, source_of(name)] for name in self.modules]


BASICS = Program(("widelane.transport.remote.places", "widelane.transport.remote.basics"))


@cache
def source_of(name: str) -> str:
    """The text of a module, which isn't imported for that."""
    package, _, module = name.rpartition(".")
    return (resources.files(package) / f"{module}.py").read_text(encoding="utf-8")


@cache
def preamble() -> bytes:
    """What `START` reads: the frame, behind its length."""
    text = source_of(frame.NAME).encode()
    return f"{len(text)}\n".encode() + text
