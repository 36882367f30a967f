"""Reads the memory of cards by nvidia-smi, in a thread of its own and only when asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import Callable, Optional

from ..loop import Loop

_GPUS = ("--query-gpu=index,uuid,memory.used", "--format=csv,noheader,nounits")
_APPS = ("--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits")
_TIMEOUT = 20.0


@dataclass(frozen=True)
class Sample:
    """MiB used by handle (None: can't be read); pids on each card with what they hold. `at` is monotonic."""

    at: float
    used: dict[str, Optional[int]]
    pids: dict[str, list[tuple[int, str]]]
    trouble: str = ""


def take(timeout: float = _TIMEOUT) -> Sample:
    """Ask now. Never raises: what can't be read is missing."""
    at = time.monotonic()
    if shutil.which("nvidia-smi") is None:
        return Sample(at, {}, {}, "nvidia-smi isn't installed")
    try:
        text = _ask(_GPUS, timeout)
        apps = _ask(_APPS, timeout)
    except (OSError, subprocess.SubprocessError) as error:
        return Sample(at, {}, {}, f"nvidia-smi: {error}")
    used: dict[str, Optional[int]] = {}
    for line in text.splitlines():
        index, _, rest = line.partition(",")
        uuid, _, memory = rest.partition(",")
        number = int(memory) if memory.strip().isdigit() else None
        used[index.strip()] = used[uuid.strip()] = number
    return Sample(at, used, _pids(apps))


def _ask(query: tuple[str, ...], timeout: float) -> str:
    done = subprocess.run(
        ["nvidia-smi", *query], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
    )
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def _pids(text: str) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3 and parts[1].isdigit():
            found.setdefault(parts[0], []).append((int(parts[1]), parts[2]))
    return found


def owner(pid: int) -> str:
    """A process of somebody, in words."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as source:  # noqa: PTH123 - read at once
            return f"{source.read().strip()} (pid {pid}, user {os.stat(f'/proc/{pid}').st_uid})"  # noqa: PTH116 - as above
    except OSError:
        return f"pid {pid}"


class Sampler:
    """One reading at a time; `on_sample` is called in the loop."""

    def __init__(self, loop: Loop, on_sample: Callable[[Sample], None]) -> None:
        self._loop = loop
        self._on_sample = on_sample
        self._due: Optional[float] = None
        self._running = False
        self._closed = False

    @property
    def busy(self) -> bool:
        """A reading is under way or due."""
        return self._running or self._due is not None

    def ask(self, after: float) -> None:
        """Take a reading then, or sooner when someone else wants it sooner."""
        at = time.monotonic() + after
        if self._running or (self._due is not None and self._due <= at + 0.001):
            return
        self._due = at
        self._loop.after(after, lambda: self._go(at))

    def close(self) -> None:
        """Answers that come later are dropped."""
        self._closed = True

    def _go(self, due: float) -> None:
        if self._due != due or self._closed:
            return
        self._due, self._running = None, True
        threading.Thread(target=self._work, name="sample", daemon=True).start()

    def _work(self) -> None:
        sample = take()
        if not self._closed:
            self._loop.post(lambda: self._arrived(sample))

    def _arrived(self, sample: Sample) -> None:
        self._running = False
        self._on_sample(sample)
