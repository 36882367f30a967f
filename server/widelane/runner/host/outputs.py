"""Which declared outputs are there, and which of them this attempt made.

An output is a path or a glob relative to the unit's folder; a folder stands for the files below it.
Fresh means: not there before the start, or of another size, inode or modification time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

Marks = dict[str, list[int]]
"""Path -> [size, inode, mtime in ns]."""


class Verdict(NamedTuple):
    """`reason` is "" when every declared output is there and fresh; `files` are the fresh ones."""

    reason: str
    detail: str
    files: tuple[str, ...]


def snapshot(cwd: Path, patterns: Iterable[str]) -> Marks:
    """Every file that the patterns match now."""
    marks: Marks = {}
    for pattern in patterns:
        for path in _matches(cwd, pattern):
            mark = _mark(cwd / path)
            if mark is not None:
                marks[path] = mark
    return marks


def judge(cwd: Path, patterns: Iterable[str], before: Marks) -> Verdict:
    """Hold the declared outputs against what was there before the start."""
    fresh: set[str] = set()
    for pattern in patterns:
        there = [path for path in _matches(cwd, pattern) if _mark(cwd / path) is not None]
        if not there:
            return Verdict("output_missing", f"nothing matches {pattern!r}", tuple(sorted(fresh)))
        made = [path for path in there if _mark(cwd / path) != before.get(path)]
        if not made:
            return Verdict("output_stale", f"{pattern!r} is as it was before the start", tuple(sorted(fresh)))
        fresh.update(made)
    return Verdict("", "", tuple(sorted(fresh)))


def make_folders(cwd: Path, patterns: Iterable[str]) -> None:
    """Make the folders that literal outputs go into, since an archive carries no empty ones."""
    for pattern in patterns:
        folder = cwd
        for part in Path(pattern).parts[:-1]:
            if any(char in part for char in "*?["):
                break
            folder = folder / part
        folder.mkdir(parents=True, exist_ok=True)


def _mark(path: Path) -> list[int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_size, found.st_ino, found.st_mtime_ns]


def _matches(cwd: Path, pattern: str) -> list[str]:
    """Files, relative to `cwd`; a name that exists as written is no glob."""
    literal = cwd / pattern
    found = [literal] if literal.exists() else cwd.glob(pattern)
    files: set[str] = set()
    for path in found:
        if path.is_dir():
            files.update(_below(path, cwd))
        elif path.is_file():
            files.add(path.relative_to(cwd).as_posix())
    return sorted(files)


def _below(folder: Path, cwd: Path) -> Iterable[str]:
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base) / name
            if path.is_file():
                yield path.relative_to(cwd).as_posix()
