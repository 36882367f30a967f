"""Containers as real processes: a process tree of its own for each pod, killed whole when the pod goes."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from widelane.simcloud import smi, vminit

_END_SECONDS = 10.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Container:
    """One container. Starting it again wipes its disk, as the service does."""

    def __init__(self, folder: Path, args: str, env: dict[str, str], gpus: int) -> None:
        self._folder = folder
        self._args = args
        self._env = env
        self._gpus = gpus
        self.starts = 0
        self._root = folder
        self._process: dict[str, Any] | None = None

    def start(self) -> None:
        """Run the command. Returns once its first process lives."""
        self.starts += 1
        self._root = self._folder / f"start-{self.starts}"
        for name in ("bin", "home", "tmp"):
            (self._root / name).mkdir(parents=True)
        cards = smi.gpus_of(self._folder.name, "nvidia-a100-80gb", self._gpus, 80.0)
        self._program("nvidia-smi", smi.script(cards))
        self._program("runpodctl", '#!/bin/sh\necho "$@" >>"$HOME/runpodctl.log"\n')
        words = " ".join(map(shlex.quote, shlex.split(self._args)))
        (self._root / "command").write_text(f"exec {words}\n")
        path = f"{self._root}/bin:{Path(sys.executable).resolve().parent}:{_PATH}"
        description = {
            "script": str(self._root / "command"),
            "env": {"HOME": f"{self._root}/home", "TMPDIR": f"{self._root}/tmp", "PATH": path, **self._env},
            "cwd": str(self._root / "home"),
            "log": str(self._root / "log"),
            "isolation": "auto",
        }
        (self._root / "vm.json").write_text(json.dumps(description))
        subprocess.run(
            [sys.executable, "-I", "-S", vminit.__file__, str(self._root)],
            env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
            check=True,
            timeout=30,
        )
        self._process = json.loads((self._root / "vm.pid").read_text())

    def ended(self) -> bool:
        """Whether the command has ended by itself."""
        return "startup-script exit status" in self.log()

    def log(self) -> str:
        """What the command said since it was last started."""
        with contextlib.suppress(OSError):
            return (self._root / "log").read_text()
        return ""

    def kill(self) -> None:
        """End everything in it."""
        found, self._process = self._process, None
        if found is None:
            return
        pid, until = found["pid"], time.monotonic() + _END_SECONDS
        while vminit.start_time(pid) == found["start"] and time.monotonic() < until:
            if found["isolation"] == "reaper" and vminit.kill_below(pid):
                continue
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.005)

    def _program(self, name: str, text: str) -> None:
        path = self._root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
