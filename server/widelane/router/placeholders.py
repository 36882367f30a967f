"""Placeholders in commands and outputs: `{model}` is filled in, `{{model}}` stays as `{model}`.

Only a name in braces is a placeholder. JSON, `${HOME}` and `{}` pass through as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

GPUS = "gpus"
SHARD = "shard"
SHARDS = "shards"
_NONE: frozenset[str] = frozenset()
_PLACEHOLDER = re.compile(r"(?<!\$)(\{+)([A-Za-z_][A-Za-z0-9_]*)(\}+)")


def names_in(texts: Iterable[str]) -> frozenset[str]:
    """Every name that is to be filled in."""
    named = [_names(text) for text in texts if "{" in text]
    return _NONE.union(*named) if named else _NONE


@lru_cache(maxsize=4096)
def _names(text: str) -> frozenset[str]:
    found = _PLACEHOLDER.findall(text)
    return frozenset([name for opening, name, closing in found if min(len(opening), len(closing)) % 2])


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put the values in. A name without a value stays in its braces; doubled braces become single ones."""
    if "{" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        opening, name, closing = match.groups()
        depth = min(len(opening), len(closing))
        before, after = opening[depth:], closing[depth:]
        kept = depth // 2
        if depth % 2:
            inner = values.get(name, f"{{{name}}}")
        else:
            inner, kept = f"{{{name}}}", kept - 1
        return f"{before}{'{' * kept}{inner}{'}' * kept}{after}"

    return _PLACEHOLDER.sub(replace, text)
