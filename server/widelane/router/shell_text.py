"""What a text says to a shell: variables that it takes from outside, and loops that wait for all they started."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh"})
_SPLIT_AT = frozenset({"&&", "||", ";", "|", "&", ";;"})
_USED = re.compile(r"\$(?:\{(?P<braced>[A-Za-z_]\w*)(?P<rest>[^}]*)\}|(?P<bare>[A-Za-z_]\w*))")
_SET = re.compile(
    r"(?:^|[\s;&|({])(?:(?:for|select)\s+([A-Za-z_]\w*)\s+in\b|read\s+(?:-\w+\s+)*([A-Za-z_]\w*)|([A-Za-z_]\w*)\+?=)"
)
_KEYWORDS = frozenset({"do", "then", "else", "{", "(", "!"})


def script_of(program: list[str]) -> str | None:
    """The text that a shell is given with -c; None when the words start no shell with one."""
    if not program or program[0].rpartition("/")[2] not in SHELLS:
        return None
    flag = next((i for i, w in enumerate(program[1:], 1) if w.startswith("-") and w.endswith("c")), None)
    return program[flag + 1] if flag is not None and flag + 1 < len(program) else None


def segments_of(script: str) -> list[list[str]]:
    """The simple commands of a script, by words. Raises ValueError when a quote stays open."""
    return [words for words, _ in _simple(script) if words]


def variables_of(text: str) -> frozenset[str]:
    """Variables that a text takes from its environment: used without a default, and not set by the text itself."""
    shown = _unquoted(text)
    own = {name for names in _SET.findall(shown) for name in names if name}
    used = {found["braced"] or found["bare"] for found in _USED.finditer(shown) if not _has_default(found["rest"])}
    return frozenset(used - own)


def waits_in_a_loop(script: str) -> bool:
    """Whether a loop starts commands in the background and waits for all of them before it goes on."""
    depth, started = 0, False
    try:
        for words, end in _simple(script):
            rest = list(words)
            while rest and rest[0] in _KEYWORDS:
                depth += rest.pop(0) == "do"
            if rest[:1] == ["done"]:
                depth -= 1
            if rest == ["wait"] and depth > 0 and started:
                return True
            started = started or end == "&"
    except ValueError:
        return False
    return False


def _has_default(rest: str | None) -> bool:
    return rest is not None and rest.lstrip(":")[:1] in tuple("-=+?")


def _simple(script: str) -> Iterator[tuple[list[str], str]]:
    """(words, the operator behind them) of each simple command."""
    lexer = shlex.shlex(script.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if word in _SPLIT_AT:
            yield words, word
            words = []
        else:
            words.append(word)
    yield words, ""


def _unquoted(text: str) -> str:
    """The text without what stands in single quotes or behind a backslash."""
    kept: list[str] = []
    double, position = False, 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 2
            continue
        if character == "'" and not double:
            end = text.find("'", position + 1)
            position = len(text) if end < 0 else end + 1
            continue
        double ^= character == '"'
        kept.append(character)
        position += 1
    return "".join(kept)
