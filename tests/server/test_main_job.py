"""The main job as an agent does it: plan, dispatch, follow and release over stdio, against a simulated cloud."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from tests.server.conftest import Connect

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(180)]

PLAN = """\
widelane: 1
task: agent
phases:
  - name: work
    intent: capture-7b
    axes: {n: 8}
    gpu_hours: 8
    setup_minutes: 2
    width: 8
    source: {path: job}
    command: python3 work.py {n}
    outputs: ["out/{n}.txt"]
"""
WORK = """\
import pathlib, sys, time
pathlib.Path("out").mkdir(exist_ok=True)
while pathlib.Path({hold!r}).exists():
    time.sleep(0.05)
pathlib.Path(f"out/{{sys.argv[1]}}.txt").write_text(sys.argv[1])
"""
SCENARIO = """\
clock: {rate: 300}
boot_seconds: 5
stock:
  - {zone: us-central1-a, machine_type: a2-ultragpu-4g, model: FLEX_START, count: 1}
quotas: {us-central1: {PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 16, NVIDIA_A100_80GB_GPUS: 4, A2_CPUS: 500}}
"""
SIM = ("--sim", "sim.yaml")


class Told:
    """Progress as a client hears it."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.words: list[str] = []

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        self.values.append(progress)
        self.words.append(str(message))


def widelane(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "widelane.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[Path]:
    """Units wait as long as this file exists. The job, its plan and its scenario are around it."""
    file = tmp_path / "hold"
    file.touch()
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "work.py").write_text(WORK.format(hold=str(file)))
    (tmp_path / "sim.yaml").write_text(SCENARIO)
    yield file
    file.unlink(missing_ok=True)
    widelane(tmp_path, "cancel", "last")
    widelane(tmp_path, "wait", "last", "--timeout", "60")
    widelane(tmp_path, "sim", "stop")


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    assert answer.structured_content is not None
    return answer.structured_content


async def follow(client: Client, run_id: str, states: set[str], told: Told | None = None) -> dict[str, Any]:
    """The run once its state is one of `states`, by waiting calls alone."""
    seen: list[str] = []
    while len(seen) < 30:
        answer = await client.call_tool("dispatch_status", {"run_id": run_id, "wait_s": 20}, progress_callback=told)
        assert answer.structured_content is not None, answer.content
        seen.append(answer.structured_content["state"])
        if seen[-1] in states:
            return answer.structured_content
    raise AssertionError(f"run {run_id} didn't get to {states}: {seen}")


async def test_a_plan_is_revised_dispatched_followed_and_done_at_the_realized_width(
    over_stdio: Connect, tmp_path: Path, hold: Path
):
    async with over_stdio(*SIM) as client:
        narrow = await call(client, "plan_width", plan=PLAN.replace("width: 8", "width: 1"))
        assert narrow["verdict"] == "REVISE"
        refused = await call(
            client, "dispatch", plan=PLAN.replace("width: 8", "width: 1"), plan_digest=narrow["plan_digest"]
        )
        assert (refused["started"], refused["reason"]) == (False, "plan_revise")

        judged = await call(client, "plan_width", plan=PLAN)
        assert judged["verdict"] == "PASS"
        dry = await call(client, "dispatch", plan=PLAN)
        assert (dry["reason"], dry["plan_digest"]) == ("dry_run", judged["plan_digest"])
        assert await anyio.Path(os.environ["WIDELANE_HOME"]).exists() is False

        report = await call(client, "quota_check", plan=PLAN)
        assert report["project"] == "sim-project"
        admits = {(rung["machine_type"], rung["provisioning_model"]): rung["admits"] for rung in report["rungs"]}
        assert admits["a2-ultragpu-8g", "STANDARD"] == "no"

        started = await call(client, "dispatch", plan=PLAN, plan_digest=judged["plan_digest"])
        assert (started["started"], started["reason"]) == (True, "started")
        assert started["state"] in {"queued", "walking"}
    await anyio.Path(hold).unlink()

    # Another session of the agent: the run went on without the first one.
    told = Told()
    async with over_stdio(*SIM) as client:
        ended = await follow(client, started["run_id"], {"succeeded", "failed", "stopped", "exhausted"}, told)
        (work,) = ended["phases"]
        assert (ended["state"], work["requested_width"], work["realized_width"]) == ("succeeded", 8, 4)
        assert work["units"] == {"total": 8, "succeeded": 8, "failed": 0, "running": 0}
        tries = [(row["width"], row["outcome"]) for row in work["attempts"] if row["zone"]]
        assert tries[-1] == (4, "granted")
        assert {outcome for width, outcome in tries[:-1] if width == 8} == {"capacity"}
        assert any(row["outcome"] == "skipped" and row["zone"] is None for row in work["attempts"])
        assert told.values
        assert any("of 8 units done" in words for words in told.words)

        record = await client.read_resource(f"widelane://runs/{started['run_id']}")
        assert json.loads(getattr(record.contents[0], "text", "")) == ended
        again = await call(client, "dispatch", plan=PLAN, plan_digest=judged["plan_digest"])
        assert (again["started"], again["reason"], again["run_id"]) == (False, "already_done", started["run_id"])
        assert await call(client, "release", run_id=started["run_id"]) == ended

    pulled = widelane(tmp_path, "pull", "last", "--to", "here")
    assert sorted(Path(line).name for line in pulled.stdout.splitlines()) == [f"{n}.txt" for n in range(8)]


async def test_release_ends_a_run_that_works_and_lets_go_of_its_machine(
    over_stdio: Connect, tmp_path: Path, hold: Path
):
    async with over_stdio(*SIM) as client:
        judged = await call(client, "plan_width", plan=PLAN)
        started = await call(client, "dispatch", plan=PLAN, plan_digest=judged["plan_digest"])
        adopted = await call(client, "dispatch", plan=PLAN, plan_digest=judged["plan_digest"])
        assert (adopted["reason"], adopted["run_id"]) == ("adopted", started["run_id"])
        await follow(client, started["run_id"], {"running"})
        released = await call(client, "release", run_id=started["run_id"])
        assert released["run_id"] == started["run_id"]
        ended = await follow(client, started["run_id"], {"cancelled"})
        assert ended["phases"][0]["machine"] is None
        assert await call(client, "release", run_id="last") == ended
