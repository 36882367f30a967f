"""Preconditions: whether what a job needs of its host is there now."""

from __future__ import annotations

import glob
import os
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any, Callable, Optional

from . import witness

Json = dict[str, Any]


def unmet(one: Json, cwd: str, root: Path, gpus: Optional[int]) -> str:
    """Why a precondition isn't met, in one line; "" when it is. Never raises for what it finds.

    `gpus` is how many cards the host has, None while that isn't known.
    """
    try:
        return _CHECKS[one["kind"]](one, cwd, root, gpus)
    except (OSError, ValueError, TypeError, KeyError) as error:
        return f"{one['kind']}: {error}"


def watched(one: Json, cwd: str, root: Path) -> Optional[Path]:
    """The nearest existing folder of what a precondition looks at; None when it isn't a file."""
    if one["kind"] == "file":
        path = Path(cwd, one["path"])
    elif one["kind"] == "glob":
        fixed: list[str] = []
        for part in Path(cwd, one["pattern"]).parts:
            if glob.has_magic(part):
                break
            fixed.append(part)
        path = Path(*fixed, "any")
    elif one["kind"] == "env_witness":
        path = root / "env" / "any"
    else:
        return None
    for folder in path.parents:
        if folder.is_dir():
            return folder
    return None


def slow(one: Json) -> bool:
    """Whether a look may take long."""
    return bool(one["kind"] == "command")


def pause(one: Json) -> float:
    """Seconds between looks, for what no event tells."""
    if one["kind"] == "not_before":
        return min(30.0, max(0.05, _instant(one["at"]) - time.time()))
    return float(one.get("every", 60.0 if one["kind"] in ("file", "glob", "env_witness") else 10.0))


def _file(one: Json, cwd: str, _root: Path, _gpus: Optional[int]) -> str:
    return "" if Path(cwd, one["path"]).exists() else f"{one['path']} isn't there"


def _glob(one: Json, cwd: str, _root: Path, _gpus: Optional[int]) -> str:
    least = int(one.get("min", 1))
    count = len(glob.glob(os.path.join(glob.escape(cwd), one["pattern"]), recursive=True))  # noqa: PTH118, PTH207 - absolute patterns too
    return "" if count >= least else f"{one['pattern']} matches {count} of {least}"


def _command(one: Json, cwd: str, _root: Path, _gpus: Optional[int]) -> str:
    folder = str(Path(cwd, one.get("cwd", "")))
    words = " ".join(one["argv"])
    try:
        done = subprocess.run(
            one["argv"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=float(one.get("timeout", 30)),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"`{words:.200}` took more than {one.get('timeout', 30)} s"
    return "" if done.returncode == 0 else f"`{words:.200}` exited with {done.returncode}"


def _witness(one: Json, _cwd: str, root: Path, _gpus: Optional[int]) -> str:
    return witness.lacks(root, one["provider"], one["hash"])


def _disk(one: Json, cwd: str, _root: Path, _gpus: Optional[int]) -> str:
    found = os.statvfs(Path(cwd, one["path"]))
    free = found.f_bavail * found.f_frsize >> 20
    return "" if free >= one["mib"] else f"{free} MiB free at {one['path']}, {one['mib']} wanted"


def _cards(one: Json, _cwd: str, _root: Path, gpus: Optional[int]) -> str:
    if gpus is None:
        return "the cards aren't counted yet"
    return "" if gpus >= one["min"] else f"the host has {gpus} GPUs, {one['min']} wanted"


def _later(one: Json, _cwd: str, _root: Path, _gpus: Optional[int]) -> str:
    return "" if time.time() >= _instant(one["at"]) else f"not before {one['at']}"


def _instant(at: Any) -> float:
    return float(at) if isinstance(at, (int, float)) else datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp()


_CHECKS: dict[str, Callable[[Json, str, Path, Optional[int]], str]] = {
    "file": _file,
    "glob": _glob,
    "command": _command,
    "env_witness": _witness,
    "disk_free": _disk,
    "gpu_total": _cards,
    "not_before": _later,
}
