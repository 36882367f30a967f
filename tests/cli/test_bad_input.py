"""Bad input, each case as a process of its own: a clear error with place and fix, and nothing created."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from widelane.cli.main import run

pytestmark = pytest.mark.slow

Widelane = Callable[..., CompletedProcess[str]]

GOOD = """\
widelane: 1
phases:
  - name: generate
    intent: capture-7b
    axes: {model: 2, draw_set: 10}
    gpu_hours: 8
    setup_minutes: 8
    width: 8
    command: python3 gen.py --model {model} --draws {draw_set}
    outputs: ["out/{model}/{draw_set}.json"]
"""
ROOT = Path(__file__).resolve().parents[2]
BLOCK = "```yaml widelane\n" + GOOD + "```\n"


@dataclass(frozen=True)
class Bad:
    """A plan that is wrong: `place` is its line and column, `says` and `fix` what the user is told."""

    text: str
    place: str
    says: str
    fix: str
    name: str = "plan.yaml"
    code: int = 2


def changed(old: str, new: str, **rest: object) -> Bad:
    assert old in GOOD
    return Bad(GOOD.replace(old, new), **rest)  # type: ignore[arg-type]  # the fields of Bad, by name


CASES = {
    "malformed YAML": changed("axes: {model: 2,", "axes: {model: 2:,", place="5", says="", fix=""),
    "two blocks": Bad(BLOCK + "\n" + BLOCK, name="plan.md", place="14", says="block", fix="one"),
    "no block": Bad(
        "# A plan\n\nSome prose, and no compute.\n", name="plan.md", place="1", says="block", fix="yaml widelane"
    ),
    "unknown intent": changed("capture-7b", "capture-8b", place="4:5", says="capture-8b", fix="capture-7b", code=1),
    "width 3": changed("width: 8", "width: 3", place="8:5", says="3", fix="4", code=1),
    "a command without its axes": changed(
        " --draws {draw_set}", "", place="9:5", says="draw_set", fix="{draw_set}", code=1
    ),
    "negative hours": changed("gpu_hours: 8", "gpu_hours: -8", place="6", says="-8", fix=""),
    "10^7 units": changed(
        "draw_set: 10}", "draw_set: 5000000}", place="5", says="10,000,000", fix="one unit take a block of", code=1
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_plan_is_refused_with_place_and_fix(
    case: str, widelane: Widelane, tmp_path: Path, widelane_home: Path
) -> None:
    bad = CASES[case]
    (tmp_path / bad.name).write_text(bad.text, encoding="utf-8")
    done = widelane("dispatch", bad.name)
    told = done.stderr if bad.code == 2 else done.stdout
    assert done.returncode == bad.code, done.stdout + done.stderr
    assert re.search(rf"{re.escape(bad.name)}:{bad.place}\b", told), told
    assert bad.says in told
    assert bad.fix in told
    assert "fix:" in told
    assert "Traceback" not in done.stdout + done.stderr
    assert not widelane_home.exists()
    if bad.code == 2:
        assert done.stdout == ""
        assert done.stderr.startswith("error[")


@pytest.mark.parametrize("verb", ["check", "plan"])
@pytest.mark.parametrize("case", CASES)
def test_check_and_plan_say_the_same_of_it(
    case: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = CASES[case]
    (tmp_path / bad.name).write_text(bad.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run([verb, bad.name]) == bad.code
    written = capsys.readouterr()
    told = written.err if bad.code == 2 else written.out
    assert re.search(rf"{re.escape(bad.name)}:{bad.place}\b", told), told
    assert bad.says in told
    assert bad.fix in told


def test_a_binary_file_is_no_plan(widelane: Widelane, tmp_path: Path, widelane_home: Path) -> None:
    (tmp_path / "plan.yaml").write_bytes(bytes(range(256)))
    done = widelane("dispatch", "plan.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert "plan.yaml:" in done.stderr
    assert "fix:" in done.stderr
    assert "Traceback" not in done.stderr
    assert not widelane_home.exists()


@pytest.mark.parametrize("verb", ["plan", "quota", "dispatch"])
def test_a_scenario_with_negative_stock_is_refused_before_anything_starts(
    verb: str, widelane: Widelane, tmp_path: Path, widelane_home: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "s.yaml").write_text(
        "stock:\n  - {zone: us-central1-a, machine_type: a2-ultragpu-8g, model: SPOT, count: -1}\n", encoding="utf-8"
    )
    done = widelane(verb, "plan.yaml", "--sim", "s.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "s.yaml:2:" in done.stderr
    assert "-1" in done.stderr
    assert "Traceback" not in done.stderr
    assert not widelane_home.exists()


def test_without_credentials_and_without_sim_dispatch_says_what_to_do(
    widelane: Widelane, tmp_path: Path, widelane_home: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD, encoding="utf-8")
    done = widelane("dispatch", "plan.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("error[")
    assert "--sim" in done.stderr
    assert "Traceback" not in done.stderr
    assert not widelane_home.exists()


def test_a_project_without_credentials_names_the_command_to_log_in(
    widelane: Widelane, tmp_path: Path, widelane_home: Path
) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD, encoding="utf-8")
    (tmp_path / "widelane.toml").write_text('[lanes.gcp]\nproject = "p-123456"\n', encoding="utf-8")
    done = widelane("quota", "plan.yaml")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "gcloud auth application-default login" in done.stderr
    assert "Traceback" not in done.stderr
    assert not widelane_home.exists()


def test_another_digest_than_the_plans_is_refused(widelane: Widelane, tmp_path: Path, widelane_home: Path) -> None:
    (tmp_path / "plan.yaml").write_text(GOOD, encoding="utf-8")
    done = widelane("dispatch", "plan.yaml", "--plan-digest", "0000")
    assert done.returncode == 2
    assert "error[stale_plan]" in done.stderr
    assert not widelane_home.exists()


@pytest.mark.parametrize("verb", ["status", "wait", "logs", "pull", "cancel", "release"])
def test_a_run_that_is_not_there_is_named(verb: str, widelane: Widelane) -> None:
    done = widelane(verb, "r-nowhere")
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("error[not_found]: ")
    assert "r-nowhere" in done.stderr
    assert "fix:" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "a.yaml", "--wide"),
        ("paln", "a.yaml"),
        ("quota", "--width", "eight"),
        ("wait", "last", "--timeout", "-1"),
        ("surfaces",),
        ("quota",),
        ("quota", "plan.yaml", "--width", "8"),
    ],
    ids=" ".join,
)
def test_usage_errors_are_a_2_with_a_way_on(arguments: tuple[str, ...], widelane: Widelane) -> None:
    done = widelane(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error[")
    assert "fix:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "verb",
    [
        ("check", "/dev/zero"),
        ("check", "-"),
        ("plan", str(ROOT / "examples/capture/plan.md"), "--sim", "/dev/zero"),
        ("sim", "serve", "/dev/zero"),
    ],
    ids=" ".join,
)
def test_input_without_end_is_refused_before_it_fills_the_memory(verb: tuple[str, ...], tmp_path: Path) -> None:
    bounded = ["sh", "-c", 'ulimit -v 4000000; exec "$@" </dev/zero', "sh", sys.executable, "-m", "widelane.cli"]
    ran = subprocess.run(
        [*bounded, *verb], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 2, ran.stderr
    assert "iB, which no" in ran.stderr
