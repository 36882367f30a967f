"""As much of GraphQL as the `runpod` package writes: one field with arguments, which are literals."""

from __future__ import annotations

import json
import re
from typing import Any

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\\n]|\\.)*")|([A-Za-z_]\w*)|(-?\d+(?:\.\d+)?)|([{}\[\]:,()!$]))')


class SyntaxTroubleError(Exception):
    """The text isn't GraphQL."""


class Reader:
    """Reads one operation: `name` is its first field (below `myself` the second), `arguments` what it is given."""

    def __init__(self, text: str) -> None:
        self._tokens = self._split(text)
        self._at = 0
        self.kind = self._next()[1]
        if self._peek()[0] == "name":
            self._next()
        self._take("{")
        self.name = self._next()[1]
        self.arguments: dict[str, Any] = {}
        if self._peek()[1] == "(":
            self._next()
            while self._peek()[1] != ")":
                key = self._next()[1]
                self._take(":")
                self.arguments[key] = self._value()
            self._next()
        self.words = {token for kind, token in self._tokens if kind == "name"}

    def _split(self, text: str) -> list[tuple[str, Any]]:
        tokens: list[tuple[str, Any]] = []
        at = 0
        text = text.strip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise SyntaxTroubleError(f"Syntax Error: Unexpected character at {at}: {text[at : at + 20]!r}")
            kinds = ("string", "name", "number", "mark")
            kind = next(kind for kind, value in zip(kinds, found.groups(), strict=True) if value is not None)
            value: Any = found.group().strip()
            tokens.append((kind, json.loads(value) if kind in ("string", "number") else value))
            at = found.end()
        return tokens

    def _peek(self) -> tuple[str, Any]:
        if self._at >= len(self._tokens):
            raise SyntaxTroubleError("Syntax Error: Unexpected <EOF>.")
        return self._tokens[self._at]

    def _next(self) -> tuple[str, Any]:
        found = self._peek()
        self._at += 1
        return found

    def _take(self, mark: str) -> None:
        kind, value = self._next()
        if kind != "mark" or value != mark:
            raise SyntaxTroubleError(f"Syntax Error: Expected {mark!r}, found {value!r}.")

    def _value(self) -> Any:
        kind, value = self._next()
        if kind != "mark":
            return {"true": True, "false": False, "null": None}.get(value, value) if kind == "name" else value
        if value == "[":
            items: list[Any] = []
            while self._peek()[1] != "]":
                items.append(self._value())
                if self._peek()[1] == ",":
                    self._next()
            self._next()
            return items
        if value != "{":
            raise SyntaxTroubleError(f"Syntax Error: Expected a value, found {value!r}.")
        fields: dict[str, Any] = {}
        while self._peek()[1] != "}":
            key_kind, key = self._next()
            if key_kind != "name":
                raise SyntaxTroubleError("Syntax Error: Expected Name, found String.")
            self._take(":")
            fields[key] = self._value()
            if self._peek()[1] == ",":
                self._next()
        self._next()
        return fields
