"""dispatch and the verbs around it, as processes of their own against a simulated cloud."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from widelane.models.dispatch import DispatchAnswer, RunStatus

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
Widelane = Callable[..., subprocess.CompletedProcess[str]]

PLAN = """\
widelane: 1
task: cli
phases:
  - name: work
    intent: capture-7b
    axes: {n: 8}
    gpu_hours: 8
    setup_minutes: 2
    width: 8
    source: {path: .}
    command: python3 work.py {n}
    outputs: ["out/{n}.txt"]
"""
WORK = """\
import pathlib, sys, time
n = sys.argv[1]
pathlib.Path("out").mkdir(exist_ok=True)
while pathlib.Path({hold!r}).exists():
    time.sleep(0.05)
print("unit", n, "\\x1b[2J done")
if n == {bad!r}:
    sys.exit("unit " + n + " fails")
pathlib.Path(f"out/{{n}}.txt").write_text(n)
"""
SCENARIO = """\
clock: {rate: 300}
boot_seconds: 5
stock:
  - {zone: us-central1-a, machine_type: a2-ultragpu-4g, model: FLEX_START, count: 1}
"""
STOCKOUT = "capacity (ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS)"


class Job:
    """A folder with a plan and a scenario; its units wait as long as `hold` exists, and unit `bad` fails."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hold = folder / "hold"
        (folder / "job").mkdir()
        (folder / "job" / "plan.yaml").write_text(PLAN, encoding="utf-8")
        (folder / "sim.yaml").write_text(SCENARIO, encoding="utf-8")
        self.write()
        self.arguments = ("dispatch", "job/plan.yaml", "--sim", "sim.yaml")

    def write(self, bad: str = "") -> None:
        text = WORK.format(hold=str(self.hold), bad=bad)
        (self.folder / "job" / "work.py").write_text(text, encoding="utf-8")


@pytest.fixture
def job(tmp_path: Path, widelane: Widelane) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    made.hold.unlink(missing_ok=True)
    widelane("cancel", "last")
    widelane("wait", "last", "--timeout", "60")
    widelane("sim", "stop")


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(done.stdout)


def test_piped_lines_tell_why_each_rung_missed_and_the_width_that_came_of_it(job: Job, widelane: Widelane) -> None:
    done = widelane(*job.arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "PASS  job/plan.yaml  no findings"
    assert f"missed  a2-ultragpu-8g FLEX_START us-central1-a: {STOCKOUT}" in lines
    assert "granted a2-ultragpu-4g FLEX_START us-central1-a" in lines
    assert "width   4 of 8 asked: 8 units re-sharded over 4 GPUs" in lines
    assert "gone    a2-ultragpu-4g FLEX_START us-central1-a" in lines
    assert "run     succeeded" in lines
    assert re.fullmatch(
        r"  work +succeeded +width 4 of 8 asked +gcp a2-ultragpu-4g FLEX_START us-central1-a +8/8 units", lines[-1]
    )
    assert re.fullmatch(r"run \S+ started\n", done.stderr)

    listed = widelane("list")
    assert len(listed.stdout.splitlines()) == 2
    assert "work succeeded" in listed.stdout
    status = widelane("status")
    assert (status.returncode, status.stderr) == (0, "")
    assert "granted  a2-ultragpu-4g FLEX_START us-central1-a" in status.stdout
    timeline = widelane("status", "--timeline").stdout.splitlines()
    missed = rf"  \S+ \S+Z +\+0:00:\d\d  missed  a2-ultragpu-8g .*{re.escape(STOCKOUT)}  \[asked 8, got 0\]"
    assert any(re.fullmatch(missed, line) for line in timeline), timeline
    assert re.search(r"granted a2-ultragpu-4g .*  \[asked 8, got 4\]$", "\n".join(timeline), re.MULTILINE)

    pulled = widelane("pull", "--to", "here")
    assert pulled.returncode == 0, pulled.stderr
    assert sorted(Path(line).name for line in pulled.stdout.splitlines()) == [f"{n}.txt" for n in range(8)]
    assert all((job.folder / line).is_file() for line in pulled.stdout.splitlines())

    again = widelane(*job.arguments)
    assert again.returncode == 0
    assert "nothing was created: run" in again.stderr
    assert len(widelane("list").stdout.splitlines()) == 2


def test_json_is_the_tools_structured_content_and_nothing_else(job: Job, widelane: Widelane) -> None:
    done = widelane(*job.arguments, "--json")
    assert done.returncode == 0, done.stderr
    dispatched = DispatchAnswer.model_validate(answer(done))
    assert (dispatched.started, dispatched.reason) == (True, "started")
    assert dispatched.phases[0].realized_width == 4
    assert "run     succeeded" in done.stderr
    status = RunStatus.model_validate(answer(widelane("status", "--json")))
    assert status.run_id == dispatched.run_id
    assert status.phases == dispatched.phases
    events = answer(widelane("status", "--timeline", "--json"))["events"]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    selected = next(event["body"] for event in events if event["kind"] == "backend_selected")
    assert (selected["requested_width"], selected["realized_width"], selected["degraded"]) == (8, 4, True)
    assert all(
        {"requested_width", "realized_width", "lane", "zone"} <= event["body"].keys()
        for event in events
        if event["kind"] in ("backend_selected", "attempt_failed")
    )
    logs = answer(widelane("logs", "--json", "--unit", "5"))
    assert [(log["phase"], log["part"]) for log in logs["logs"]] == [("work", "5-1")]
    assert widelane("logs", "--json", "--follow").returncode == 2
    assert answer(widelane("list", "--json"))["runs"][0]["run_id"] == dispatched.run_id
    assert RunStatus.model_validate(answer(widelane("wait", "--json"))) == status
    assert RunStatus.model_validate(answer(widelane("release", "last", "--json"))) == status


def test_a_dry_run_creates_nothing(job: Job, widelane: Widelane, widelane_home: Path) -> None:
    done = widelane(*job.arguments, "--dry-run")
    assert done.returncode == 0
    assert done.stderr == "nothing was created: this was a dry run\n"
    assert not widelane_home.exists()


def test_a_run_whose_units_fail_is_a_1_and_its_log_is_safe_to_print(job: Job, widelane: Widelane) -> None:
    job.write(bad="3")
    done = widelane(*job.arguments)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ended   work failed, 7 of 8 units" in done.stdout
    log = widelane("logs")
    assert log.returncode == 0
    assert widelane("logs", "--unit", "8").returncode == 2
    assert "unit 3 fails" in log.stdout
    assert "\x1b" not in log.stdout
    assert "unit 5  done" in widelane("logs", "last", "--phase", "work", "--unit", "5").stdout
    assert widelane("status").returncode == 1


def test_detach_wait_and_cancel(job: Job, widelane: Widelane) -> None:
    job.hold.touch()
    done = widelane(*job.arguments, "--detach", "--json")
    assert done.returncode == 0, done.stderr
    run_id = answer(done)["run_id"]
    waited = widelane("wait", run_id, "--timeout", "0.5")
    assert waited.returncode == 3
    assert f"error[timeout]: run {run_id} still goes on after 0.5 s" in waited.stderr
    early = widelane("pull", run_id)
    assert (early.returncode, early.stdout) == (0, "")
    assert early.stderr == f"nothing to pull: no unit of this has a result yet in {run_id}\n"
    cancelled = widelane("cancel", run_id)
    assert cancelled.returncode == 0
    assert f"`widelane wait {run_id}`" in cancelled.stderr
    ended = widelane("wait", run_id)
    assert ended.returncode == 1
    assert re.search(r"^run \S+  cancelled$", ended.stdout, re.MULTILINE)
    status = RunStatus.model_validate(answer(widelane("status", run_id, "--json")))
    assert [phase.machine for phase in status.phases] == [None]


def read_until(descriptor: int, word: bytes) -> bytes:
    """What a terminal shows up to and with `word`; everything when it never does."""
    shown = b""
    while word not in shown:
        try:
            part = os.read(descriptor, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    return shown


def test_ctrl_c_on_a_terminal_detaches_and_the_run_goes_on(job: Job, widelane: Widelane) -> None:
    job.hold.touch()
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "widelane.cli", *job.arguments],
        cwd=job.folder,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        shown = read_until(ours, b"4 running")
        assert b"missed" in shown
        assert b"4 of 8 asked" in shown
        os.killpg(process.pid, signal.SIGINT)
        read_until(ours, b"never shown")
        assert process.stderr is not None
        told = process.stderr.read().decode()
    os.close(ours)
    assert process.returncode == 130
    found = re.search(r"detached: run (\S+) goes on", told)
    assert found is not None, told
    assert f"widelane cancel {found[1]}" in told
    assert widelane("status", found[1]).returncode == 0
    job.hold.unlink()
    followed = widelane("logs", found[1], "--follow")
    assert followed.returncode == 0
    assert sorted(re.findall(r"^unit (\d)  done$", followed.stdout, re.MULTILINE)) == list("01234567")
    assert widelane("wait", found[1]).returncode == 0
