"""A host to run specs on: a store, a runner file, a fake nvidia-smi, and a look at every process it starts."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from widelane.runner.host import processes

PATIENCE = 30.0


def until(fact: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Wait for something observable to become true, and return it."""
    deadline = time.monotonic() + patience
    while True:
        found = fact()
        if found:
            return found
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def unit(index: int, argv: list[str], **more: Any) -> dict[str, Any]:
    base = {"index": index, "digest": digest(f"unit {index}"), "argv": argv, "axes": {}, "arm": "", "gpus": 1}
    return {**base, "outputs": [], "env": {}, **more}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class HostBench:
    """One root folder and one store under `base`."""

    def __init__(self, base: Path, runner: Path) -> None:
        self.base = base
        self.runner = runner
        self.root = base / "root"
        self.store = base / "store"
        self.bin = base / "bin"
        for folder in (self.store, self.bin):
            folder.mkdir(parents=True)
        self.mark = f"WIDELANE_BENCH={uuid.uuid4().hex}"
        self.python = sys.executable
        self.key = "specs/D/L.json"
        self.store_url = ""
        self.gpus(8)

    def gpus(self, count: int) -> None:
        lines = [f"{i}, GPU-{i:08x}, NVIDIA A100-SXM4-80GB, 81920" for i in range(count)]
        self.nvidia_smi("cat <<'END'\n" + "\n".join(lines) + "\nEND")

    def nvidia_smi(self, script: str) -> None:
        tool = self.bin / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)

    def spec(self, units: Iterable[dict[str, Any]], width: int = 8, **more: Any) -> None:
        spec = {
            "spec": 1,
            "run_id": "R",
            "dispatch_id": "D",
            "lease": "L",
            "phase": "p",
            "requested_width": 8,
            "expected_width": width,
            "source": None,
            "inputs": [],
            "workdir": "",
            "env": {},
            "cpu_slots": 2,
            "setup": None,
            "units": list(units),
            "merge": None,
            "limits": {"grace": 2.0, "store_patience": 1.0},
            **more,
        }
        path = self.store / self.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(spec))

    def command(self, *more: str) -> list[str]:
        url = self.store_url or self.store.as_uri()
        own = ["host", "--store", url, "--spec", self.key, "--root", str(self.root), "--once"]
        return [self.python, str(self.runner), *own, *more]

    def environ(self) -> dict[str, str]:
        name, _, value = self.mark.partition("=")
        return {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", name: value}

    def start(self) -> subprocess.Popen[bytes]:
        with (self.base / "host.log").open("ab") as log:
            return subprocess.Popen(self.command(), env=self.environ(), stdout=log, stderr=log)

    def run(self, code: int = 0) -> dict[str, Any]:
        """Run to the end; returns finished.json, or {} when it isn't in the store."""
        process = self.start()
        try:
            assert process.wait(60) == code, self.said()
        finally:
            process.kill()
            process.wait()
        path = self.store / "leases/L/finished.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def said(self) -> str:
        log = self.base / "host.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def record(self, name: str) -> dict[str, Any]:
        return json.loads((self.store / "records" / f"{digest(name)}.json").read_text())

    def failures(self) -> dict[str, dict[str, Any]]:
        """Failure records by the unit's digest."""
        found = [json.loads(path.read_text()) for path in sorted((self.store / "failures").rglob("*.json"))]
        return {record["unit"]: record for record in found}

    def host(self) -> dict[str, Any]:
        return json.loads((self.store / "leases/L/host.json").read_text())

    def log(self, name: str) -> str:
        return (self.store / "logs/L" / f"{name}.log").read_text(errors="replace")

    def work(self, name: str) -> Path:
        return self.root / "work" / name

    def pids(self, *needles: str) -> list[int]:
        """Processes of this bench whose command line has all the needles."""
        found: list[int] = []
        for pid in processes.marked(self.mark.encode()):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if all(needle in line for needle in needles):
                found.append(pid)
        return found

    def sweep(self) -> list[int]:
        """Give what is ending a moment, then kill and return what is left."""
        deadline = time.monotonic() + 5.0
        left = self.pids()
        while left and time.monotonic() < deadline:
            time.sleep(0.01)
            left = self.pids()
        processes.signal_all(left, signal.SIGKILL)
        return left
