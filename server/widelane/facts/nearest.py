"""Did you mean: the known name that is closest to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The closest of `known`, None when none is close."""
    # Only a mistake pays for the import.
    from difflib import get_close_matches  # noqa: PLC0415  keeps 2 ms off every start

    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean "x"?`, or "" when no known name is close."""
    found = nearest(word, known)
    return f'did you mean "{found}"?' if found else ""
