"""The GPUs that this process was given: those of the host as nvidia-smi lists them, less what others hold."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

_UUIDS = ("GPU-", "MIG-")
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
        return self.uuid if self.uuid.startswith(_UUIDS) else str(self.index)

    def as_json(self) -> dict[str, Any]:
        """Its row in host.json."""
        return {"index": self.index, "uuid": self.uuid, "name": self.name, "memory_mib": self.memory_mib}


@dataclass(frozen=True)
class Census:
    """What was counted; `trouble` says why there is none."""

    gpus: tuple[Gpu, ...]
    trouble: str = ""


def count(environ: Mapping[str, str], timeout: float = 60.0) -> Census:
    """Ask nvidia-smi, and keep to what the environment gives. Anything else counts as none, with the reason.

    A scheduler that hands out some GPUs of a host names them in CUDA_VISIBLE_DEVICES, while nvidia-smi may list
    all. Where there is no nvidia-smi, a scheduler's word alone counts.
    """
    given = _given(environ)
    if given is not None and not given:
        return Census((), "the environment gives no GPU: CUDA_VISIBLE_DEVICES is empty")
    if shutil.which("nvidia-smi", path=environ.get("PATH")) is None:
        if given is None:
            return Census((), "nvidia-smi isn't installed")
        return Census(tuple(_named(entry, place) for place, entry in enumerate(given)))
    listed = _ask(environ, timeout)
    if given is None or listed.trouble:
        return listed
    kept = tuple(gpu for place, entry in enumerate(given) for gpu in _matching(entry, place, listed.gpus))
    return Census(kept, "" if kept else f"nvidia-smi lists none of the GPUs given: {', '.join(given)}")


def _given(environ: Mapping[str, str]) -> Optional[list[str]]:
    """Indices or UUIDs of the GPUs that this process may use; None when nothing says so."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        visible = environ.get("SLURM_JOB_GPUS")
    if visible is None:
        number = environ.get("SLURM_GPUS_ON_NODE", "")
        visible = ",".join(map(str, range(int(number)))) if number.isdigit() else None
    if visible is None:
        return None
    given: list[str] = []
    for entry in (part.strip() for part in visible.split(",")):
        # CUDA itself stops at the first entry that is no device.
        if not entry.isdigit() and not entry.startswith(_UUIDS):
            break
        given.append(entry)
    return given


def _matching(entry: str, place: int, listed: tuple[Gpu, ...]) -> tuple[Gpu, ...]:
    """The card that an entry means. Slices of cards aren't listed among the cards: their name counts."""
    found = tuple(gpu for gpu in listed if entry == str(gpu.index) or (entry != "" and gpu.uuid.startswith(entry)))
    return (_named(entry, place),) if not found and entry.startswith("MIG-") else found[:1]


def _named(entry: str, place: int) -> Gpu:
    """A card of which nothing but its name is known."""
    return Gpu(int(entry) if entry.isdigit() else place, entry, "", None)


def _ask(environ: Mapping[str, str], timeout: float) -> Census:
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
