"""Texts of a spec that have places which are filled in when an attempt starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

LATE = ("gpu", "GPU", "gpus", "job.attempt", "run.dir", "run.id")


def is_a(value: object, kind: type | tuple[type, ...]) -> bool:
    """isinstance, for values of JSON that stay of any type."""
    return isinstance(value, kind)


def flaw(word: Any) -> str:
    """What is wrong with a word; "" for nothing. A word is a text, or text and names by turns."""
    if is_a(word, str):
        return "has a zero byte" if "\0" in word else ""
    parts: Any = word if is_a(word, list) else []
    if len(parts) % 2 == 0 or not all(is_a(part, str) for part in parts):
        return "is neither a text nor a list of text, name, text, ..."
    for name in parts[1::2]:
        if name not in LATE and not name.startswith("env:"):
            return f"has an unknown name {name!r}"
    return ""


def fill(word: Any, values: Mapping[str, str]) -> str:
    """The text, with `values` and the variables of this host in it; a variable that isn't set is empty."""
    if is_a(word, str):
        return str(word)
    parts: list[str] = []
    for place, part in enumerate(word):
        if place % 2 == 0:
            parts.append(part)
        elif part.startswith("env:"):
            parts.append(os.environ.get(part[4:], ""))
        else:
            parts.append(values[part])
    return "".join(parts)
