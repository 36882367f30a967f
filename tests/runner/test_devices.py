from __future__ import annotations

import os
from pathlib import Path

import pytest

from widelane.runner.host.devices import Gpu, count, read
from widelane.runner.host.slots import Slots


def test_a_list_of_cards_is_read() -> None:
    census = read("0, GPU-a, NVIDIA A100-SXM4-80GB, 81920\n1, GPU-b, NVIDIA A100-SXM4-80GB, 81920\n")
    assert census.gpus == (
        Gpu(0, "GPU-a", "NVIDIA A100-SXM4-80GB", 81920),
        Gpu(1, "GPU-b", "NVIDIA A100-SXM4-80GB", 81920),
    )
    assert census.trouble == ""


@pytest.mark.parametrize(
    ("row", "handle", "memory"),
    [
        ("3, GPU-a, A, [N/A]", "GPU-a", None),
        ("3, [N/A], A, 100", "3", 100),
        ("3, MIG-GPU-a/1/0, A, 100", "MIG-GPU-a/1/0", 100),
        ("3, , , ", "3", None),
    ],
)
def test_what_a_card_does_not_tell_is_left_open(row: str, handle: str, memory: int | None) -> None:
    [gpu] = read(row).gpus
    assert (gpu.handle, gpu.memory_mib) == (handle, memory)


@pytest.mark.parametrize(
    "text", ["", "\n\n", "No devices were found\n", "Failed to initialize NVML: Driver/library mismatch", "x, y"]
)
def test_anything_else_counts_as_no_card_with_the_reason(text: str) -> None:
    census = read(text)
    assert census.gpus == ()
    assert census.trouble


def test_a_missing_or_hanging_nvidia_smi_counts_as_no_card(tmp_path: Path) -> None:
    assert "isn't installed" in count({"PATH": str(tmp_path)}).trouble
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    tool.chmod(0o755)
    assert "timed out" in count({"PATH": f"{tmp_path}:{os.environ['PATH']}"}, timeout=0.2).trouble
    tool.chmod(0o644)
    assert count({"PATH": str(tmp_path)}).trouble


LISTED = "0, GPU-aa, A, 100\n1, GPU-bb, A, 100\n2, GPU-cc, A, 100\n3, GPU-dd, A, 100\n"


@pytest.fixture
def driver(tmp_path: Path) -> str:
    """A PATH on which nvidia-smi lists four cards, whatever the environment says."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\ncat <<'EOF'\n{LISTED}EOF\n")
    tool.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("visible", "handles"),
    [
        ("2,3", ["GPU-cc", "GPU-dd"]),
        ("3,2", ["GPU-dd", "GPU-cc"]),
        ("GPU-bb", ["GPU-bb"]),
        ("GPU-b", ["GPU-bb"]),
        ("1,-1,2", ["GPU-bb"]),
        ("MIG-1234", ["MIG-1234"]),
    ],
)
def test_of_the_cards_of_a_host_only_those_given_count(driver: str, visible: str, handles: list[str]) -> None:
    census = count({"PATH": driver, "CUDA_VISIBLE_DEVICES": visible})
    assert [gpu.handle for gpu in census.gpus] == handles


def test_with_nothing_said_every_card_of_the_host_counts(driver: str) -> None:
    assert len(count({"PATH": driver}).gpus) == 4


@pytest.mark.parametrize("visible", ["", "-1", "NoDevFiles", "7"])
def test_none_given_is_none_with_the_reason(driver: str, visible: str) -> None:
    census = count({"PATH": driver, "CUDA_VISIBLE_DEVICES": visible})
    assert census.gpus == ()
    assert census.trouble


@pytest.mark.parametrize(
    ("environ", "handles"),
    [
        ({"CUDA_VISIBLE_DEVICES": "4,5"}, ["4", "5"]),
        ({"SLURM_JOB_GPUS": "2,3"}, ["2", "3"]),
        ({"SLURM_GPUS_ON_NODE": "3"}, ["0", "1", "2"]),
        ({"CUDA_VISIBLE_DEVICES": "0", "SLURM_JOB_GPUS": "6"}, ["0"]),
        ({"SLURM_GPUS_ON_NODE": "gpu:a100:3"}, []),
    ],
)
def test_without_nvidia_smi_the_scheduler_s_word_counts(
    tmp_path: Path, environ: dict[str, str], handles: list[str]
) -> None:
    assert [gpu.handle for gpu in count({"PATH": str(tmp_path), **environ}).gpus] == handles


def test_slots_give_the_lowest_free_gpus_and_count_what_was_done() -> None:
    slots = Slots(("GPU-a", "GPU-b", "GPU-c"))
    slots.take((0, 1), "7")
    assert slots.free() == [2]
    assert slots.visible((0, 1)) == ("GPU-a", "GPU-b")
    slots.give_back((0, 1), done=True)
    assert slots.rows()[1] == {"gpu": "1", "done": 1, "running": ""}
    assert (slots.need("all"), slots.need(2), slots.need(0)) == (3, 2, 1)


def test_cpu_slots_count_only() -> None:
    slots = Slots((), 4)
    assert (slots.size, slots.width, slots.visible((0,))) == (4, 0, ())
    assert (slots.need("all"), slots.need(8)) == (4, 1)
    assert slots.rows()[0]["gpu"] == "cpu0"
