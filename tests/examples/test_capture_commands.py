"""The commands of examples/capture, run one by one without widelane: the numbers that every dispatch must repeat."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

CAPTURE = Path(__file__).parents[2] / "examples" / "capture"
MODELS = ("bigram", "fivegram")
DRAW_SETS = range(10)


def run(folder: Path, *command: str, devices: str = "") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"CUDA_VISIBLE_DEVICES": devices}
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, check=False)


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example with all twenty units and the merge done."""
    folder = tmp_path_factory.mktemp("capture") / "work"
    shutil.copytree(CAPTURE, folder)
    for model in MODELS:
        for draw_set in DRAW_SETS:
            out = f"out/{model}/{draw_set}.json"
            done = run(folder, "score.py", "--model", model, "--draw-set", str(draw_set), "--out", out)
            assert done.returncode == 0, done.stderr
    assert run(folder, "merge.py", "out", "merged.json").returncode == 0
    return folder


@pytest.fixture(scope="module")
def expected() -> Any:
    return load(CAPTURE / "expected.json")


def test_the_merged_numbers_are_the_expected_ones(captured: Path, expected: Any) -> None:
    assert load(captured / "merged.json") == expected["merged"]


def test_a_model_with_more_context_pays_less_for_unseen_text(expected: Any) -> None:
    models = expected["merged"]["models"]
    assert models["fivegram"]["held_out_bits"] < models["bigram"]["held_out_bits"]
    assert all(found["seen_bits"] < found["held_out_bits"] for found in models.values())


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_the_launcher_gives_the_same_sums_for_any_number_of_ranks(captured: Path, expected: Any, ranks: int) -> None:
    out = f"neighbours-{ranks}.json"
    devices = ",".join(f"GPU-{index}" for index in range(ranks))
    done = run(
        captured, "launch.py", "--ranks", str(ranks), "--out", out, "neighbours.py", "merged.json", devices=devices
    )
    assert done.returncode == 0, done.stderr
    assert load(captured / out) == expected["neighbours"]
    assert sorted(done.stderr.splitlines()) == [f"rank {n} of {ranks} on GPU-{n}" for n in range(ranks)]


def test_the_launcher_refuses_more_ranks_than_visible_devices(captured: Path) -> None:
    done = run(captured, "launch.py", "--ranks", "2", "--out", "never.json", "neighbours.py", devices="GPU-0")
    assert done.returncode == 1
    assert "2 ranks asked for, 1 devices visible" in done.stderr
    assert not (captured / "never.json").exists()


def test_the_report_quotes_the_merged_numbers(captured: Path, expected: Any) -> None:
    (captured / "neighbours.json").write_text(json.dumps(expected["neighbours"]), encoding="utf-8")
    done = run(captured, "report.py")
    assert done.returncode == 0, done.stderr
    page = (captured / "report.md").read_text(encoding="utf-8")
    assert f"| fivegram | {expected['merged']['models']['fivegram']['held_out_bits']:.3f} |" in page
    assert "Best on unseen text: fivegram." in page


def test_the_shipped_text_is_what_the_grammar_writes(tmp_path: Path) -> None:
    shutil.copy(CAPTURE / "write_text.py", tmp_path)
    assert run(tmp_path, "write_text.py").returncode == 0
    assert (tmp_path / "text.txt").read_bytes() == (CAPTURE / "text.txt").read_bytes()
