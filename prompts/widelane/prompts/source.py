"""Markdown sources with `${name}` places, rendered so that every value can be found again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from widelane.errors import TableError

_PLACE = re.compile(r"\$\{([a-z][a-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Source:
    """One Markdown source as packaged. `name` is its file name without `.md`."""

    name: str
    text: str

    @property
    def places(self) -> frozenset[str]:
        """Names of the values that it takes."""
        return frozenset(_PLACE.findall(self.text))


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered source, and the values in the order in which they stand in it."""

    text: str
    values: tuple[tuple[str, str], ...]
    """(name, text as inserted)."""


@cache
def source(name: str) -> Source:
    """The packaged source `name`.md.

    Raises:
        TableError: there is no such source.
    """
    file = Path(__file__).with_name(f"{name}.md")
    if not file.is_file():
        raise TableError(f"prompts/{name}.md", 1, "file", "there is no such prompt source")
    return Source(name, file.read_text(encoding="utf-8"))


def render(page: Source, values: Mapping[str, str | Rendered], words: Mapping[str, str] | None = None) -> Rendered:
    """Fill every place of `page`. `words` fill places too, but aren't values; a rendered page brings its own values.

    Raises:
        TableError: a place has nothing to fill it, or a value has no place.
    """
    given: dict[str, str | Rendered] = {**values, **(words or {})}
    unused = sorted(set(given) - page.places)
    if unused:
        raise TableError(f"prompts/{page.name}.md", 1, unused[0], "this value has no place in the source")
    pieces: list[str] = []
    used: list[tuple[str, str]] = []
    end = 0
    for match in _PLACE.finditer(page.text):
        name = match[1]
        if name not in given:
            line = page.text.count("\n", 0, match.start()) + 1
            raise TableError(f"prompts/{page.name}.md", line, name, "no value was given for this place")
        value = given[name]
        pieces += (page.text[end : match.start()], value if isinstance(value, str) else value.text)
        if isinstance(value, Rendered):
            used += value.values
        elif name in values:
            used.append((name, value))
        end = match.end()
    return Rendered("".join((*pieces, page.text[end:])), tuple(used))


def join(parts: Iterable[Rendered], between: str = "\n") -> Rendered:
    """Several rendered pages as one."""
    pages = tuple(parts)
    text = between.join(part.text.strip("\n") for part in pages)
    return Rendered(text, tuple(value for part in pages for value in part.values))


def pick(page: Source, values: Mapping[str, str]) -> dict[str, str | Rendered]:
    """Those of `values` that `page` has places for."""
    return {name: value for name, value in values.items() if name in page.places}
