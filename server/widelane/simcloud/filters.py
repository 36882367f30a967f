"""The API's list parameters: `filter`, `maxResults`, `pageToken`."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from widelane.simcloud.records import Json
from widelane.simcloud.refusals import invalid

PAGE_MAX = 500

Item = TypeVar("Item")
Test = Callable[[Json], bool]

_TOKEN = re.compile(r'\s*(?:(?P<open>\()|(?P<close>\))|(?P<word>[\w.\-]+)|(?P<op>!=|=|:)|(?P<text>"[^"]*"|\'[^\']*\'))')
_VALUE = re.compile(r'\s*("[^"]*"|\'[^\']*\'|[^\s()]+)')


def compile_filter(text: str) -> Test:
    """The test that a `filter` makes: comparisons joined by AND (or by nothing), in any parentheses.

    `key=v`, `key!=v`, `key:v` (contains; `*`: present), `key eq re`, `key ne re` (whole match). Raises Refused.
    """
    tests: list[Test] = []
    at = depth = 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        if token is None:
            raise _refused(text)
        if token["open"] or token["close"]:
            depth += 1 if token["open"] else -1
            at = token.end()
        elif token["word"] == "AND":
            at = token.end()
        else:
            test, at = _comparison(text, token)
            tests.append(test)
        if depth < 0:
            raise _refused(text)
    if depth:
        raise _refused(text)
    return lambda item: all(test(item) for test in tests)


def page(items: Sequence[Item], key: Callable[[Item], str], params: Json) -> tuple[list[Item], str | None]:
    """The page that the parameters ask for, and the token of the next one. `items` are sorted by `key`."""
    try:
        most = int(params.get("maxResults", PAGE_MAX))
        after = base64.b64decode(params.get("pageToken", ""), altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error) as error:
        raise invalid("pageToken", params.get("pageToken", ""), "The page token or page size is invalid.") from error
    if not 0 <= most <= PAGE_MAX:
        raise invalid("maxResults", most, f"Values must be within the range: [0, {PAGE_MAX}]")
    rest = [item for item in items if key(item) > after]
    shown = rest[: most or PAGE_MAX]
    if len(shown) == len(rest):
        return shown, None
    return shown, base64.urlsafe_b64encode(key(shown[-1]).encode()).decode()


def _comparison(text: str, first: re.Match[str]) -> tuple[Test, int]:
    """One `field op value`; where the text goes on."""
    operator = re.compile(r"\s*(!=|=|:|eq\b|ne\b)").match(text, first.end())
    value = None if operator is None else _VALUE.match(text, operator.end())
    if first["word"] is None or operator is None or value is None or first["word"] in {"OR", "NOT"}:
        raise _refused(text)
    wanted = value[1].strip("\"'")
    return _test(first["word"].split("."), operator[1], wanted, text), value.end()


def _test(path: list[str], operator: str, wanted: str, text: str) -> Test:
    if operator in {"eq", "ne"}:
        try:
            pattern = re.compile(wanted)
        except re.error as error:
            raise _refused(text) from error
        return lambda item: bool(pattern.fullmatch(_find(item, path) or "")) == (operator == "eq")
    if operator == ":":
        if wanted == "*":
            return lambda item: _find(item, path) is not None
        return lambda item: wanted.lower() in (_find(item, path) or "").lower()
    return lambda item: (_find(item, path) == wanted) == (operator == "=")


def _find(item: Json, path: list[str]) -> str | None:
    value: Any = item
    for index, step in enumerate(path):
        if not isinstance(value, dict):
            return None
        found = cast("Json", value)
        rest = ".".join(path[index:])
        if rest in found:
            value = found[rest]
            break
        value = found.get(step)
    if value is None or isinstance(value, (dict, list)):
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refused(text: str) -> Exception:
    return invalid("filter", text, "Invalid list filter expression (comparisons joined by AND are understood here).")
