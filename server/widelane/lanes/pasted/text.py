"""What was pasted, before any lane looks at it: a JSON document where there is one, and the text as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from widelane.errors import InputError

LARGEST = 4 * 1024 * 1024
"""Bytes; no answer of a provider is longer."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SHAPES = "give the error body, the operation, the state line or what the command printed"
_STATUS = re.compile(r"^\s*HTTP/[\d.]+ (\d{3})\b|\bHTTP(?:Error| status| code)?[ :=]+(\d{3})\b", re.MULTILINE)
_CODE = re.compile(r"^\s*(?:rc|exit code|exit status|returncode)\s*[:= ]\s*(-?\d{1,3})\b[:,]?\s*", re.IGNORECASE)
_EXCEPTION = re.compile(r"^(?:[a-z_]\w*\.)*([A-Z]\w+)(?:: (.*))?$", re.MULTILINE)
_NAMES_AN_EXCEPTION = re.compile(
    r"(?:Error|Exception|Timeout|Disconnected|Denied|Lost|Unavailable|Forbidden|Unauthorized|NotFound|NotVerifiable)$"
)


@dataclass(frozen=True, slots=True)
class Pasted:
    """`document` is None when there is no JSON object in it."""

    document: Mapping[str, Any] | None
    text: str

    @property
    def status(self) -> int | None:
        """An HTTP status that stands in the text, before or without a body."""
        found = _STATUS.search(self.text)
        return None if found is None else int(found.group(1) or found.group(2))

    @property
    def code(self) -> int | None:
        """An exit code that the text begins with: `rc=255 ...`."""
        found = _CODE.match(self.text)
        return None if found is None else int(found.group(1))

    @property
    def words(self) -> str:
        """The text without such an exit code."""
        return _CODE.sub("", self.text, count=1)

    @property
    def exception(self) -> tuple[str, str] | None:
        """Class and message of the last line that tells an exception of Python."""
        for name, message in reversed(_EXCEPTION.findall(self.text)):
            if _NAMES_AN_EXCEPTION.search(name):
                return str(name), str(message)
        return None


def read(data: bytes) -> Pasted:
    """Read an answer.

    Raises:
        InputError: there is nothing in it, it isn't text, or it is more than one answer.
    """
    if len(data) > LARGEST:
        raise InputError(f"more than {LARGEST // 2**20} MiB, which no answer has", hint=_SHAPES)
    text = _decode(data).strip()
    if not text:
        raise InputError("there is nothing to judge: the answer is empty", hint=_SHAPES, code="empty_answer")
    return Pasted(_document(text), text)


def _decode(data: bytes) -> str:
    if data.startswith(_UTF16):
        return data.decode("utf-16", errors="replace")
    text = data.decode("utf-8-sig", errors="replace")
    strange = sum(sign == "\ufffd" or (sign < " " and sign not in "\t\n\r\x1b\f") for sign in text)
    if "\0" in text or strange * 10 > len(text):
        raise InputError("this is no text", hint=_SHAPES, code="not_an_answer")
    return text


def _document(text: str) -> Mapping[str, Any] | None:
    """The whole as JSON, or the first JSON object in it."""
    try:
        return _object(json.loads(text))
    except RecursionError:
        raise InputError("the JSON is nested too deeply for an answer", hint=_SHAPES, code="not_an_answer") from None
    except ValueError:
        pass
    start = text.find("{")
    try:
        found = json.JSONDecoder().raw_decode(text, start)[0] if start >= 0 else None
    except (ValueError, RecursionError):
        return None
    return _mapping(found) or None


def _object(value: object) -> Mapping[str, Any] | None:
    """A document on its own; of a list, its only one. An entry of a table of errors gives its `input`."""
    if isinstance(value, list):
        entries = cast("list[object]", value)
        if len(entries) != 1:
            raise _several(len(entries))
        value = entries[0]
    document = _mapping(value)
    if document is None:
        return None
    cases = document.get("cases")
    if isinstance(cases, list):
        raise _several(len(cast("list[object]", cases)))
    return _mapping(document.get("input")) or document


def _several(count: int) -> InputError:
    return InputError(f"a list of {count} answers", hint="give one answer at a time", code="several_answers")


def _mapping(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else None
