"""Whole runs on a host behind a real sshd: two phases, lost lines, and SIGKILL to whoever carries them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import guards
from tests.fakes import sshbox, sshd
from tests.fakes.sshbox import SshBox
from widelane import plan
from widelane.dispatcher import Client
from widelane.dispatcher.assembly import make_bench
from widelane.models.attempt import Outcome
from widelane.models.dispatch import DispatchState, RunStatus
from widelane.models.verdict import Verdict
from widelane.router import judge

Eventually = Callable[..., None]
pytestmark = pytest.mark.slow

TWO_PHASES = """\
widelane: 1
phases:
  - name: capture
    intent: capture-7b
    axes: {draw: 4}
    gpu_hours: 8
    width: 4
    source: {path: .}
    setup: python3 -c "open('ready', 'w').write('x')"
    command: python3 capture.py {draw}
    outputs: ["out/{draw}.txt"]
    merge: python3 merge.py
    merge_outputs: ["merged.txt"]
  - name: judge
    intent: capture-7b
    after: [capture]
    axes: none
    why: one pass over what was merged
    gpu_hours: 0.5
    source: {path: .}
    command: python3 judge.py
    outputs: ["verdict.txt"]
"""
ONE_PHASE = """\
widelane: 1
phases:
  - name: capture
    intent: capture-7b
    axes: {{draw: 6}}
    gpu_hours: 0.3
    width: 2
    source: {{path: .}}
    env: {{SALT: "{salt}", WITNESS: "{witness}"}}
    command: python3 witness.py {{draw}}
    outputs: ["out/{{draw}}.txt"]
"""
SOURCES = {
    "capture.py": """\
import os, sys
os.makedirs("out", exist_ok=True)
assert open("ready").read() == "x"
with open(f"out/{sys.argv[1]}.txt", "w") as file:
    file.write(f"{sys.argv[1]} of {os.environ['WIDELANE_WIDTH']} on {os.environ['CUDA_VISIBLE_DEVICES']}")
""",
    "merge.py": """\
import pathlib
texts = [path.read_text() for path in sorted(pathlib.Path("out").iterdir())]
pathlib.Path("merged.txt").write_text("\\n".join(texts))
""",
    "judge.py": """\
import pathlib
pathlib.Path("verdict.txt").write_text(pathlib.Path("merged.txt").read_text().upper())
""",
    "witness.py": """\
import os, sys, time
def witness(word):
    with open(os.environ["WITNESS"], "a") as file:
        file.write(f"{word} {os.environ['SALT']} {sys.argv[1]}\\n")
witness("start")
time.sleep(0.4)
os.makedirs("out", exist_ok=True)
open(f"out/{sys.argv[1]}.txt", "w").write(sys.argv[1])
witness("end")
""",
}


class Scene:
    """One home, one box, and runs on it."""

    def __init__(self, folder: Path, box: SshBox) -> None:
        self.folder = folder
        self.box = box
        self.settings = box.settings(folder / "home")
        self.client = Client(self.settings)
        (folder / "job").mkdir()
        for name, text in SOURCES.items():
            (folder / "job" / name).write_text(text)

    def submit(self, text: str) -> str:
        parsed = plan.parse(text, "<argument>", str(self.folder / "job"))
        verdict = judge(parsed, make_bench(self.settings))
        assert verdict.verdict is Verdict.PASS, verdict
        answer = self.client.submit(parsed, verdict)
        assert answer.run_id is not None, answer
        return answer.run_id

    def one_phase(self, salt: str) -> str:
        return self.submit(ONE_PHASE.format(salt=salt, witness=self.folder / "witness"))

    def ended(self, run_id: str) -> RunStatus:
        status = self.client.wait(run_id, 60, enough=lambda _: False)
        assert not status.state.live, status
        return status

    def witnessed(self) -> list[str]:
        path = self.folder / "witness"
        return path.read_text().splitlines() if path.exists() else []

    def pids(self, word: str) -> list[int]:
        here = str(self.folder)
        described = ((pid, guards.describe(pid)) for pid in guards.pids())
        return [pid for pid, words in described if word in words and here in words]

    def kill(self, word: str) -> int:
        found = self.pids(word)
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(found)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    missing = sshd.missing()
    if missing:
        pytest.skip(missing)
    with sshbox.running(tmp_path / "box") as box:
        made = Scene(tmp_path, box)
        yield made
        made.kill("widelane.dispatcher")


def machines_left(box: SshBox) -> list[Path]:
    return list((box.workdir / "machines").rglob("launch.json"))


def test_phases_run_on_a_host_and_what_one_makes_is_there_for_the_next(scene: Scene, tmp_path: Path) -> None:
    run_id = scene.submit(TWO_PHASES)
    status = scene.ended(run_id)
    assert status.state is DispatchState.SUCCEEDED, status
    capture, judged = status.phases
    assert (capture.requested_width, capture.realized_width, capture.lane) == (4, 4, "ssh.box")
    assert (judged.realized_width, judged.lane, judged.units.succeeded) == (1, "ssh.box", 1)
    scene.client.pull(run_id, tmp_path / "pulled")
    gpus = Counter(line.split()[-1] for line in (tmp_path / "pulled" / "merged.txt").read_text().splitlines())
    assert gpus == Counter({f"GPU-0000000{n}": 1 for n in range(4)})
    assert (tmp_path / "pulled" / "verdict.txt").read_text().startswith("0 OF 4 ON GPU-")
    selected = [event for event in scene.client.events(run_id) if event.kind == "backend_selected"]
    assert [event.body["lane"] for event in selected] == ["ssh.box", "ssh.box"]
    assert machines_left(scene.box) == []
    assert scene.client.log(run_id, "capture", 2).startswith("==> capture 2-1 <==")


def test_a_box_whose_gpus_are_all_held_is_out_of_capacity(scene: Scene, tmp_path: Path, eventually: Eventually) -> None:
    holding = scene.one_phase("holder")
    eventually(scene.witnessed, within=20.0)
    scene.box.gpus(2)
    status = scene.ended(scene.one_phase("other"))
    assert status.state is DispatchState.EXHAUSTED
    rows = status.phases[0].attempts
    assert [(row.width, row.outcome, row.code) for row in rows] == [
        (2, Outcome.CAPACITY, "gpus_busy"),
        (1, Outcome.CAPACITY, "gpus_busy"),
    ]
    assert scene.ended(holding).state is DispatchState.SUCCEEDED


def test_runs_survive_lost_lines_and_the_death_of_whoever_carries_them(scene: Scene, eventually: Eventually) -> None:
    rng = random.Random(7)
    runs = [scene.one_phase("a"), scene.one_phase("b")]
    struck: Counter[str] = Counter()

    def strike(what: str) -> None:
        if what == "line":
            struck[what] += scene.box.server.cut()
        elif what == "master":
            struck[what] += scene.kill(str(scene.settings.home / "ssh"))
        else:
            struck[what] += scene.kill(what)

    blows = ["widelane.dispatcher", "line", "widelane.dispatcher", "master", "runner.pyz host", "keep.py"]
    rng.shuffle(blows)
    for number, what in enumerate(blows):
        eventually(lambda number=number: len(scene.witnessed()) >= 2 * number, within=40.0)
        strike(what)
        for run_id in runs:
            scene.client.wait(run_id, 0.2, enough=lambda _: False)
    statuses: list[Any] = [scene.ended(run_id) for run_id in runs]
    for status in statuses:
        assert status.state is DispatchState.SUCCEEDED, status
        assert [row.outcome for row in status.phases[0].attempts] == [Outcome.GRANTED]
        assert status.phases[0].realized_width == 2
    expected = Counter(f"{word} {salt} {draw}" for word in ("start", "end") for salt in "ab" for draw in range(6))
    assert Counter(scene.witnessed()) == expected
    assert sum(struck.values()) >= 3, struck
    assert machines_left(scene.box) == []
