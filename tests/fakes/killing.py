"""A simulated cloud with real machines, dispatches on it, and a way to kill what carries them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from widelane import plan
from widelane.config import Settings
from widelane.dispatcher import Client, SimTarget
from widelane.dispatcher.assembly import make_bench
from widelane.models.dispatch import RunStatus
from widelane.router import judge
from widelane.simcloud.client import SimEndpoint, call, ensure_running

SCENARIO = """\
clock: {rate: 60}
boot_seconds: 3
stock:
  - {zone: us-central1-c, machine_type: a2-ultragpu-2g, model: FLEX_START, count: 8}
"""
WITNESS = """\
import os, sys, time
draw = sys.argv[1]
def witness(word):
    with open(os.environ["WITNESS"], "a") as file:
        file.write(f"{word} {os.environ['SALT']} {draw}\\n")
witness("start")
time.sleep(0.25)
os.makedirs("out", exist_ok=True)
with open(f"out/{draw}.json", "w") as file:
    file.write(draw)
witness("end")
"""
PLAN = """\
widelane: 1
phases:
  - name: capture
    intent: capture-7b
    axes: {{draw: {units}}}
    gpu_hours: 8
    width: {width}
    source: {{path: ../job}}
    env: {{SALT: "{salt}", WITNESS: "{witness}"}}
    command: python3 witness.py {{draw}}
    outputs: ["out/{{draw}}.json"]
"""


class Scene:
    """One home, one cloud, many dispatches."""

    def __init__(self, folder: Path, units: int = 4, scenario: str = SCENARIO) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.units = units
        (folder / "job").mkdir(parents=True)
        (folder / "plans").mkdir()
        (folder / "job" / "witness.py").write_text(WITNESS)
        (folder / "sim.yaml").write_text(scenario)
        self.sim: SimEndpoint = ensure_running(folder / "sim.yaml", self.home, idle_seconds=60)
        self.settings = Settings(home=self.home).simulated(self.sim.url)
        self.client = Client(self.settings)

    def plan_text(self, salt: str) -> str:
        return PLAN.format(units=self.units, width=min(8, self.units), salt=salt, witness=self.folder / "witness.txt")

    def submit(self, salt: str) -> str:
        parsed = plan.parse(self.plan_text(salt), "<argument>", str(self.folder / "plans"))
        verdict = judge(parsed, make_bench(self.settings))
        answer = self.client.submit(parsed, verdict, sim=SimTarget(self.sim.url))
        assert answer.run_id is not None, answer
        return answer.run_id

    def submit_by_command(self, salt: str) -> subprocess.Popen[bytes]:
        path = self.folder / "plans" / f"{salt}.yaml"
        path.write_text(self.plan_text(salt))
        command = [sys.executable, "-m", "widelane.cli", "dispatch", str(path), "--sim", self.sim.url]
        quiet = subprocess.DEVNULL
        env = {**os.environ, "WIDELANE_HOME": str(self.home)}
        return subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, env=env, cwd=self.folder)

    def ended(self, run_id: str, seconds: float = 60.0) -> RunStatus:
        status = self.client.wait(run_id, seconds, enough=lambda _status: False)
        assert not status.state.live, status
        return status

    def processes(self, word: str) -> list[int]:
        """Pids of this scene's processes with `word` in their command line."""
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if word in words and str(self.folder) in words and int(entry.name) != os.getpid():
                        found.append(int(entry.name))
        return found

    def kill(self, word: str, rng: random.Random) -> bool:
        """Kill one such process with SIGKILL; whether there was one."""
        found = self.processes(word)
        if not found:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(found), signal.SIGKILL)
        return True

    def requests(self) -> list[dict[str, Any]]:
        return call(self.sim.url, "GET", "/sim/requests")["requests"]

    def instances(self) -> list[dict[str, Any]]:
        return call(self.sim.url, "GET", "/sim/state")["instances"]

    def witnessed(self) -> list[tuple[str, str, str]]:
        path = self.folder / "witness.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(word, salt, draw) for word, salt, draw in (line.split() for line in lines)]

    def wait_until(self, fact: Any, seconds: float = 20.0) -> bool:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if fact():
                return True
            time.sleep(0.05)
        return False

    def stop(self) -> None:
        if any(status.state.live for status in self.client.runs()):
            self.kill("widelane.dispatcher", random.Random(0))
        with contextlib.suppress(OSError):
            call(self.sim.url, "POST", "/sim/stop", {})
        self.wait_until(lambda: not self.processes("widelane.simcloud"))
        if not self.wait_until(lambda: not self.processes("widelane.dispatcher"), 6):
            self.kill("widelane.dispatcher", random.Random(0))
