"""TOML values by the table of keys. Problems are collected as text that names the key's path and the fix."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any, cast

from widelane.config.keys import Key, Section, Wants
from widelane.models.nearest import nearest

Table = dict[str, Any]
LARGEST_GIB = 65_536
_MOST = 1_000_000


def dotted(*path: str) -> str:
    """A path of keys as TOML writes it; names that need quotes get them."""
    return ".".join(part if part.replace("-", "").replace("_", "").isalnum() else f'"{part}"' for part in path)


def shown(value: object) -> str:
    """What a value is, in words and shortened: `the text "8"`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    text = str(value)
    text = text if len(text) <= 40 else text[:39] + "…"
    return f'the text "{text}"' if isinstance(value, str) else text


def unknown(path: tuple[str, ...], name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """An unknown key, with the nearest known one."""
    guess = nearest(name, known)
    if guess:
        fix = f"did you mean `{guess}`?"
    else:
        fix = f"known keys: {', '.join(known)}" if known else "this section has no keys"
    return f"{dotted(*path, name)} is not a key; {fix}"


def read_section(section: Section, table: Table, path: tuple[str, ...], problems: list[str]) -> Table:
    """The values of a table that could be read; missing and unknown keys are problems."""
    values: Table = {}
    for name, value in table.items():
        key = section.keys.get(name)
        if key is None:
            problems.append(unknown(path, name, section.keys))
            continue
        read = _read(key, value)
        if read is None:
            problems.append(
                f"{dotted(*path, name)} wants {key.wants}; found {shown(value)}: write {name} = {key.example}"
            )
        else:
            values[name] = read
    for name, key in section.keys.items():
        if key.required and name not in table:
            problems.append(f"{dotted(*path, name)} is missing: write {name} = {key.example}")
    return values


def _read(key: Key, value: object) -> Any:
    """The value in the settings' own type, None when it can't be used."""
    read = _READERS[key.wants](value)
    if key.pattern and isinstance(read, str) and not re.fullmatch(key.pattern, read):
        return None
    return read


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() and "\x00" not in value else None


def _texts(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list) or not value:
        return None
    items = cast("list[object]", value)
    texts = tuple(text for item in items if (text := _text(item)) is not None)
    return texts if len(texts) == len(items) else None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 1 <= value <= _MOST else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _disk(value: object) -> Table | None:
    if not isinstance(value, dict) or not value:
        return None
    table = cast("Table", value)
    kind, gib = _text(table.get("type", "any")), _count(table.get("gib", 1))
    if kind is None or gib is None or gib > LARGEST_GIB or set(table) - {"type", "gib"}:
        return None
    return table


def _table(value: object) -> dict[str, str] | None:
    if not isinstance(value, dict) or not value:
        return None
    entries = cast("Table", value)
    texts = {name: text for name, item in entries.items() if (text := _text(item)) is not None}
    return texts if len(texts) == len(entries) else None


def _words(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, str):
        return _texts(value)
    try:
        return tuple(shlex.split(value)) or None
    except ValueError:
        return None


def _any(value: object) -> object:
    return value


_READERS: dict[Wants, Callable[[object], Any]] = {
    Wants.TEXT: _text,
    Wants.TEXTS: _texts,
    Wants.COUNT: _count,
    Wants.FLAG: _flag,
    Wants.DISK: _disk,
    Wants.TABLE: _table,
    Wants.WORDS: _words,
    Wants.ANY: _any,
}
