"""Which files of a folder are its source."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

from widelane.errors import StoreError

NEVER = frozenset({".git", ".venv", "__pycache__"})
_GIT_SECONDS = 120
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY")


class Excludes:
    """Paths and globs relative to a folder; each stands for what it matches and everything below.

    `*` and `?` stay within one path component, `**` spans any number. A pattern also matches itself, letter by letter.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        cleaned = {pattern.removeprefix("./").rstrip("/") for pattern in patterns} - {""}
        self._literal = cleaned
        globs = [_translate(pattern) for pattern in sorted(cleaned) if re.search(r"[*?\[]", pattern)]
        self._glob = re.compile("|".join(f"(?:{glob})" for glob in globs)) if globs else None

    def hides(self, path: str) -> bool:
        """Whether this path itself is excluded (its parents are not looked at)."""
        if path in self._literal or path.rpartition("/")[2] in NEVER:
            return True
        return self._glob is not None and self._glob.fullmatch(path) is not None

    def hides_below(self, path: str) -> bool:
        """Whether this path or one of its parents is excluded."""
        parts = path.split("/")
        return any(self.hides("/".join(parts[:count])) for count in range(1, len(parts) + 1))


def source_files(folder: Path, excludes: Excludes) -> tuple[str, list[str]]:
    """("git" or "walk", the relative paths in order).

    A folder with `.git` in it is listed by git, so that .gitignore holds; where git isn't installed, and
    elsewhere, the folder is walked. Raises `StoreError` when git refuses.
    """
    git = shutil.which("git") if (folder / ".git").exists() else None
    if git is None:
        return "walk", sorted(_walk(folder, "", excludes))
    found: set[str] = set()
    for path in _git_files(git, folder):
        if excludes.hides_below(path):
            continue
        if (folder / path).is_dir() and not (folder / path).is_symlink():
            found.update(_walk(folder, path, excludes))
        elif os.path.lexists(folder / path):
            found.add(path)
    return "git", sorted(found)


def _git_files(git: str, folder: Path) -> Iterator[str]:
    """Tracked and untracked files that aren't ignored; a nested repository is one path."""
    command = [git, "-c", "core.fsmonitor=false", "ls-files", "-co", "--exclude-standard", "-z"]
    env = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    try:
        answer = subprocess.run(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"git ls-files in {folder}: {error}") from error
    if answer.returncode != 0:
        said = answer.stderr.decode(errors="replace").strip()
        raise StoreError(f"git ls-files in {folder}: {said}", hint="make `git status` work there first")
    for name in answer.stdout.split(b"\0"):
        if name:
            yield os.fsdecode(name).rstrip("/")


def _walk(folder: Path, start: str, excludes: Excludes) -> Iterator[str]:
    """Everything that isn't a folder (links to folders count as links) and isn't excluded."""
    try:
        with os.scandir(folder / start) as entries:
            items = list(entries)
    except OSError as error:
        raise StoreError(f"{error.filename}: {error.strerror}", hint="exclude it or make it readable") from error
    for item in items:
        path = f"{start}/{item.name}" if start else item.name
        if excludes.hides(path):
            continue
        if item.is_dir(follow_symlinks=False):
            yield from _walk(folder, path, excludes)
        else:
            yield path


def _translate(pattern: str) -> str:
    """A regular expression for a glob."""
    out = ""
    parts = pattern.split("/")
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if part == "**":
            out += ".*" if last else "(?:[^/]+/)*"
        else:
            out += _component(part) + ("" if last else "/")
    return out


def _component(part: str) -> str:
    out = ""
    i = 0
    while i < len(part):
        char = part[i]
        i += 1
        end = part.find("]", i + 1) if char == "[" else -1
        if char == "*":
            out += "[^/]*"
        elif char == "?":
            out += "[^/]"
        elif end >= 0:
            inside = part[i:end].replace("\\", "\\\\").replace("[", "\\[")
            out += "[" + ("^/" + inside[1:] if inside.startswith("!") else inside.replace("^", "\\^")) + "]"
            i = end + 1
        else:
            out += re.escape(char)
    return out
