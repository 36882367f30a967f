"""init, quota, sim, surfaces and the JSON of the verbs that judge."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from widelane.models.quota import QuotaReport
from widelane.simcloud import client
from widelane.tools.desk import Desk
from widelane.tools.plan_width import PlanWidthInput, plan_width

pytestmark = pytest.mark.slow

Widelane = Callable[..., subprocess.CompletedProcess[str]]
SCENARIO = """\
stock:
  - {zone: us-central1-a, machine_type: a2-ultragpu-4g, model: SPOT, count: 1}
quotas:
  us-central1:
    PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 4
    NVIDIA_A100_80GB_GPUS: 0
    A2_CPUS: 96
    LOCAL_SSD_TOTAL_GB: 6000
    SSD_TOTAL_GB: 2000
    IN_USE_ADDRESSES: 8
global_quotas: {GPUS_ALL_REGIONS: 8}
"""


@pytest.fixture
def scenario(tmp_path: Path, widelane: Widelane) -> Iterator[Path]:
    path = tmp_path / "sim.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    yield path
    widelane("sim", "stop")


def test_plan_json_is_what_the_tool_answers(widelane: Widelane, capture: Path, repo: Path) -> None:
    done = widelane("plan", str(capture), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    desk = Desk.open(repo, os.environ)
    told = plan_width(PlanWidthInput(plan_path=str(capture)), desk)
    assert json.loads(done.stdout) == told.model_dump(mode="json")


def test_a_plan_may_come_on_stdin(widelane: Widelane, capture: Path) -> None:
    text = capture.read_text(encoding="utf-8")
    from_file = json.loads(widelane("plan", str(capture), "--json").stdout)
    from_stdin = widelane("plan", "-", "--json", stdin=text)
    assert from_stdin.returncode == 0, from_stdin.stderr
    assert json.loads(from_stdin.stdout) == from_file


def test_check_takes_several_plans_and_ends_as_the_worst(widelane: Widelane, repo: Path) -> None:
    quickstart = repo / "examples" / "quickstart"
    good, revised = str(quickstart / "revised.yaml"), str(quickstart / "plan.yaml")
    both = widelane("check", good, revised)
    assert both.returncode == 1
    assert [line.split()[0] for line in both.stdout.splitlines() if not line.startswith(" ")] == ["PASS", "REVISE"]
    with_missing = widelane("check", "--json", good, "missing.yaml", revised)
    assert with_missing.returncode == 2
    assert [json.loads(line)["verdict"] for line in with_missing.stdout.splitlines()] == ["PASS", "REVISE"]
    assert "missing.yaml:1:1" in with_missing.stderr


NARROW = """\
# Eight would do.
widelane: 1
phases:
  - name: generate
    intent: capture7b  # as last time
    axes: {model: 2, draw_set: 10}
    gpu_hours: 8
    width: 1  # one is free
    min_width: 1
    command: python gen.py --model {model} --draws {draw_set}
"""


def test_check_mends_the_file_and_keeps_its_comments(widelane: Widelane, tmp_path: Path) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text(NARROW, encoding="utf-8")
    file.chmod(0o640)
    assert widelane("check", "plan.yaml").returncode == 1
    assert file.read_text(encoding="utf-8") == NARROW
    done = widelane("check", "--fix", "plan.yaml")
    assert (done.returncode, done.stdout) == (0, "PASS  plan.yaml  no findings\n")
    assert done.stderr == "plan.yaml: changed generate.intent, generate.width\n"
    assert file.read_text(encoding="utf-8") == NARROW.replace("capture7b", "capture-7b").replace(
        "width: 1  #", "width: 8  #"
    )
    assert (file.stat().st_mode & 0o777, [path.name for path in tmp_path.iterdir()]) == (0o640, ["plan.yaml"])
    again = widelane("check", "--fix", "plan.yaml")
    assert (again.returncode, again.stderr) == (0, "")


def test_only_a_file_that_can_be_read_is_mended(widelane: Widelane, tmp_path: Path) -> None:
    refused = widelane("check", "--fix", "-", stdin=NARROW)
    assert (refused.returncode, "the plan came on stdin" in refused.stderr) == (2, True)
    broken = NARROW + "    width: 2\n"
    (tmp_path / "plan.yaml").write_text(broken, encoding="utf-8")
    assert widelane("check", "--fix", "plan.yaml").returncode == 2
    assert (tmp_path / "plan.yaml").read_text(encoding="utf-8") == broken


def test_no_colour_is_written_to_a_pipe_unless_it_is_forced(widelane: Widelane, capture: Path) -> None:
    assert "\x1b" not in widelane("check", str(capture)).stdout
    assert "\x1b[32mPASS\x1b[0m" in widelane("check", str(capture), FORCE_COLOR="1").stdout
    assert "\x1b" not in widelane("check", str(capture), FORCE_COLOR="1", NO_COLOR="1").stdout


def test_text_that_the_locale_can_not_write_is_spelled_out(widelane: Widelane, tmp_path: Path) -> None:
    (tmp_path / "größe.yaml").write_text("widelane: 1\nphases: []\n", encoding="utf-8")
    done = widelane("check", "größe.yaml", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "gr\\xf6\\xdfe.yaml:" in done.stderr


def test_init_writes_a_file_that_is_read_and_never_writes_over_one(widelane: Widelane, tmp_path: Path) -> None:
    file = tmp_path / "widelane.toml"
    assert widelane("init").returncode == 0
    assert tomllib.loads(file.read_text(encoding="utf-8")) == {}
    file.write_text("# mine\n", encoding="utf-8")
    again = widelane("init")
    assert again.returncode == 2
    assert "widelane.toml is here already" in again.stderr
    assert file.read_text(encoding="utf-8") == "# mine\n"
    assert widelane("init", "--force").returncode == 0
    assert file.read_text(encoding="utf-8") != "# mine\n"


@pytest.mark.slow
def test_quota_names_the_metric_that_binds(widelane: Widelane, scenario: Path, repo: Path) -> None:
    asked = ("quota", "--width", "8", "--intent", "capture-7b", "--sim", str(scenario))
    done = widelane(*asked)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("largest admitted width 4  project sim-project")
    assert re.search(r" 8  a2-ultragpu-8g +SPOT +no +PREEMPTIBLE_NVIDIA_A100_80GB_GPUS +0/4 +8\n", done.stdout)
    report = QuotaReport.model_validate_json(widelane(*asked, "--json").stdout)
    assert report.largest_width == 4
    plan = repo / "examples" / "quickstart" / "revised.yaml"
    assert widelane("quota", str(plan), "--sim", str(scenario)).returncode == 0


@pytest.mark.slow
def test_a_simulated_cloud_is_served_until_ctrl_c_or_stop(widelane: Widelane, scenario: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "widelane.cli", "sim", "serve", str(scenario), "--home", str(tmp_path / "clouds")]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        url = first.stdout.readline().split()[0]
        assert client.call(url, "GET", "/sim/clock")["rate"] > 0
        first.send_signal(signal.SIGINT)
    assert first.returncode == 0
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as second:
        assert second.stdout is not None
        assert second.stdout.readline()
        stopped = widelane("sim", "stop", str(scenario), "--home", str(tmp_path / "clouds"))
        assert stopped.returncode == 0, stopped.stderr
        assert stopped.stdout.endswith("  ended\n")
    assert second.returncode == 0
    none = widelane("sim", "stop", "--home", str(tmp_path / "clouds"))
    assert none.returncode == 2
    assert none.stderr.startswith("error[not_found]: no simulated cloud runs\n")


def test_surfaces_are_written_and_drift_is_a_1(widelane: Widelane, tmp_path: Path) -> None:
    assert widelane("surfaces", "--check").returncode == 1
    written = widelane("surfaces", "--write")
    assert written.returncode == 0, written.stderr
    assert "wrote CLAUDE.md\n" in written.stdout
    assert widelane("surfaces", "--check").returncode == 0
    rule = tmp_path / ".claude" / "rules" / "compute-backend-failover.md"
    rule.write_text("nothing\n", encoding="utf-8")
    drifted = widelane("surfaces", "--check")
    assert drifted.returncode == 1
    assert ".claude/rules/compute-backend-failover.md:1: " in drifted.stdout


def test_the_server_ends_when_its_client_goes(widelane: Widelane) -> None:
    done = widelane("serve")
    assert (done.returncode, done.stdout) == (0, "")


def test_quota_reads_a_saved_answer_offline(widelane: Widelane, tmp_path: Path) -> None:
    listed = [
        {"metric": "A2_CPUS", "limit": 48, "usage": 0},
        {"metric": "NVIDIA_A100_80GB_GPUS", "limit": 8, "usage": 0},
    ]
    saved = tmp_path / "region.json"
    saved.write_text(json.dumps({"kind": "compute#region", "name": "us-central1", "quotas": listed}), encoding="utf-8")
    done = widelane("quota", "--width", "8", "--intent", "capture-7b", "--from", str(saved))
    assert done.returncode == 0, done.stderr
    assert re.search(r" 8  a2-ultragpu-8g +STANDARD +no +A2_CPUS +0/48 +96\n", done.stdout)
    assert " ago" in done.stdout
    saved.write_text("nothing", encoding="utf-8")
    refused = widelane("quota", "--intent", "eval", "--from", str(saved))
    assert (refused.returncode, "is not JSON" in refused.stderr) == (2, True)


def test_one_phase_is_explained_and_drawn(widelane: Widelane, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(NARROW.replace("capture7b", "capture-7b"), encoding="utf-8")
    done = widelane("plan", "plan.yaml", "--explain", "--svg", "widths.svg")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("generate  REVISE  width 1, recommended 8\n  units       20 units")
    assert (tmp_path / "widths.svg").read_text(encoding="utf-8").startswith("<svg ")
    for wrong in (["--phase", "generate"], ["--svg", "x.svg"], ["--explain", "--json"]):
        assert widelane("plan", "plan.yaml", *wrong).returncode == 2
    unknown = widelane("plan", "plan.yaml", "--explain", "--phase", "generat")
    assert "did you mean generate?" in unknown.stderr
    assert "can't be written" in widelane("plan", "plan.yaml", "--explain", "--svg", "no/where.svg").stderr


def test_of_several_phases_one_is_named(widelane: Widelane, tmp_path: Path) -> None:
    api = "  - {name: judge, gpus: 0, after: [generate], wall_minutes: 5}\n"
    text = NARROW.replace("capture7b", "capture-7b") + api
    (tmp_path / "plan.yaml").write_text(text, encoding="utf-8")
    assert widelane("plan", "plan.yaml", "--explain").stdout.startswith("generate  ")
    assert widelane("plan", "plan.yaml", "--explain", "--phase", "judge").stdout.startswith(
        "judge  PASS\n  no GPU; 5 min"
    )
    (tmp_path / "two.yaml").write_text(text + "  - {name: more, intent: eval, gpu_hours: 1}\n", encoding="utf-8")
    refused = widelane("plan", "two.yaml", "--explain")
    assert (refused.returncode, "name one with --phase: generate, more" in refused.stderr) == (2, True)


def test_two_plans_are_compared(widelane: Widelane, tmp_path: Path) -> None:
    text = NARROW.replace("capture7b", "capture-7b")
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "b.md").write_text(
        f"# Plan\n\n```yaml widelane\n{text.replace('width: 1  #', 'width: 8  #')}```\n", "utf-8"
    )
    done = widelane("diff", "a.yaml", "b.md")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("REVISE -> PASS\n  wall clock  8 h 00 min -> 1 h 12 min\n")
    told = json.loads(widelane("diff", "a.yaml", "-", "--json", stdin=text).stdout)
    assert [phase["changed"] for phase in told["phases"]] == [[]]
    assert widelane("diff", "-", "-", stdin=text).returncode == 2
    assert "missing.yaml:1:1" in widelane("diff", "a.yaml", "missing.yaml").stderr
