"""Logs that grow: what is new in them since they were last shown."""

from __future__ import annotations

import re

_HEAD = re.compile(r"^==> .* <==$\n?", re.MULTILINE)


class LogFollower:
    """Keeps what was shown of each part (`==> phase unit <==`), as `tail -f` does of several files."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._last = ""

    def new(self, log: str) -> str:
        """The text to show next: each part's growth, under its head when another part was shown last."""
        pieces: list[str] = []
        for head, text in _parts(log):
            grown = _growth(self._shown.get(head, ""), text)
            if not grown:
                continue
            self._shown[head] = text
            if head != self._last:
                pieces.append(head)
                self._last = head
            pieces.append(grown if grown.endswith("\n") else grown + "\n")
        return "".join(pieces)


def _parts(log: str) -> list[tuple[str, str]]:
    heads = list(_HEAD.finditer(log))
    ends = [head.start() for head in heads[1:]] + [len(log)]
    return [(head[0], log[head.end() : end].rstrip("\n")) for head, end in zip(heads, ends, strict=True)]


def _growth(shown: str, text: str) -> str:
    if text.startswith(shown):
        return text[len(shown) :].lstrip("\n")
    # Only the end of a long log is kept, so its beginning moves: go on after the last line that was shown.
    last = shown.rpartition("\n")[2]
    _, found, rest = text.rpartition(last)
    return rest.lstrip("\n") if found else text
