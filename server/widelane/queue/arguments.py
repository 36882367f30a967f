"""`args` as words of a command: `--KEY VALUE`, by the type of the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from widelane.models.queue import Word
from widelane.queue.scalars import Argument, Scalar
from widelane.queue.text import Pattern

Scope = Mapping[str, str]
Values = Mapping[str, Scalar]
Render = Callable[[Scope, Values], list[Word]]


def flag_of(key: str) -> str:
    """The key as a command line has it: `--KEY`, unless it brings its own dashes."""
    return key if key.startswith("-") else f"--{key}"


def renderer(key: str, value: Argument, style: str) -> Render:
    """What makes the words of one argument. true is the flag alone, null and false are nothing."""
    flag = flag_of(key)
    if isinstance(value, tuple):
        return lambda scope, values: _listed(flag, [_resolved(one, scope, values) for one in value], style)
    if isinstance(value, Scalar):
        words = _single(flag, value)
        return lambda scope, values: words
    return lambda scope, values: _single(flag, _resolved(value, scope, values))


def from_grid(key: str) -> Render:
    """The argument that a key of the grid is by itself."""
    flag = flag_of(key)
    return lambda scope, values: _single(flag, values[key])


def slots_of(value: Argument) -> Iterator[Pattern]:
    """The texts with placeholders in an argument."""
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, Pattern):
            yield one


def _resolved(value: Scalar | Pattern, scope: Scope, values: Values) -> Scalar | Word:
    """A text that is one placeholder keeps the type of what stands in its place."""
    if isinstance(value, Scalar):
        return value
    only = value.only
    if only is not None and only in values:
        return values[only]
    return value.fill(scope)


def _single(flag: str, value: Scalar | Word) -> list[Word]:
    if not isinstance(value, Scalar):
        return [flag, value]
    if value.type == "true":
        return [flag]
    return [] if value.type in ("null", "false") else [flag, value.text]


def _listed(flag: str, values: list[Scalar | Word], style: str) -> list[Word]:
    words: list[Word] = [value.word if isinstance(value, Scalar) else value for value in values]
    if not words:
        return []
    if style == "comma":
        return [flag, ",".join(str(word) for word in words)]
    if style == "space":
        return [flag, *words]
    return [word for value in words for word in (flag, value)]
