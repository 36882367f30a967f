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
