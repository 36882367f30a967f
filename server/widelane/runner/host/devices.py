"""The GPUs of this host, as nvidia-smi lists them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

_QUERY = ("--query-gpu=index,uuid,name,memory.total", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class Gpu:
    """One card. `memory_mib` is None when the driver doesn't tell."""

    index: int
    uuid: str
    name: str
    memory_mib: Optional[int]

    @property
    def handle(self) -> str:
        """What CUDA_VISIBLE_DEVICES takes: the UUID, or the index where there is none."""
        return self.uuid if self.uuid.startswith(("GPU-", "MIG-")) else str(self.index)

    def as_json(self) -> dict[str, Any]:
        """Its row in host.json."""
        return {"index": self.index, "uuid": self.uuid, "name": self.name, "memory_mib": self.memory_mib}


@dataclass(frozen=True)
class Census:
    """What was counted; `trouble` says why there is none."""

    gpus: tuple[Gpu, ...]
    trouble: str = ""


def count(environ: Mapping[str, str], timeout: float = 60.0) -> Census:
    """Ask nvidia-smi. Anything that isn't a list of GPUs counts as none, with the reason."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", *_QUERY],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError:
        return Census((), "nvidia-smi isn't installed")
    except (OSError, subprocess.TimeoutExpired) as error:
        return Census((), f"nvidia-smi: {error}")
    text = answer.stdout.decode(errors="replace")
    if answer.returncode != 0:
        said = (answer.stderr.decode(errors="replace") or text).strip()
        return Census((), f"nvidia-smi exited with {answer.returncode}: {said[:300]}")
    return read(text)


def read(text: str) -> Census:
    """The cards in an answer of nvidia-smi."""
    gpus: list[Gpu] = []
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines:
        gpu = _row(line)
        if gpu is None:
            return Census((), f"nvidia-smi answered {line.strip()[:300]!r}")
        gpus.append(gpu)
    return Census(tuple(gpus), "" if gpus else "nvidia-smi lists no GPU")


def _row(line: str) -> Optional[Gpu]:
    """index, uuid, name (which may hold commas), memory."""
    index, _, rest = line.partition(",")
    uuid, _, rest = rest.partition(",")
    name, comma, memory = rest.rpartition(",")
    if not comma or not index.strip().isdigit():
        return None
    size = memory.strip()
    return Gpu(int(index), uuid.strip(), name.strip(), int(size) if size.isdigit() else None)
