"""Makes text from outside safe to show: nothing in it can move the cursor, recolour, retitle or reverse a terminal."""

from __future__ import annotations

import re

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x1b\\|\x07|\x9c|$)"  # OSC, DCS, SOS, PM, APC with their text
    r"|\x1b[ -/]*[0-~]",  # two-character and charset sequences
    re.MULTILINE,
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without terminal sequences; other control characters, bidi marks among them, are spelled out.

    Newlines and tabs stay; a lone carriage return becomes a newline.
    """
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub(lambda match: _spelled(ord(match[0])), text)


def clean_line(text: str) -> str:
    """As `clean`, on one line: runs of white space become one space."""
    return " ".join(clean(text).split())


def _spelled(point: int) -> str:
    return f"\\x{point:02x}" if point < 0x100 else f"\\u{point:04x}"
