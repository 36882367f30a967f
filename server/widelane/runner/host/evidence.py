"""Evidence for out of memory, looked at only after an end that wasn't a success, and what a failure is known by.

The whole log is read once, in pieces. The last hit is kept, and it counts only while no other exception follows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Optional

_PIECE = 1 << 20
_OVERLAP = 4096
_TAIL = 1 << 18

_NEEDLES = (
    b"emory",
    b"EMORY",
    b"_ALLOC_FAILED",
    b"bad_alloc",
    b"OOM when",
    b"Dst tensor",
    b"DataLoader worker",
    b"us error",
)
"""One of these is in every text that follows; searching for them is quick."""

_CLASSES: tuple[tuple[str, "re.Pattern[bytes]"], ...] = (
    (
        "shm",
        re.compile(rb"us error[^\n]{0,200}shared memory|insufficient shared memory \(shm\)"),
    ),
    (
        "host_oom",
        re.compile(
            rb"^MemoryError\b|\bMemoryError:|numpy[\w.]*_ArrayMemoryError|DefaultCPUAllocator: (?:can't|not enough)"
            rb"|std::bad_alloc|DataLoader worker \(pid[^)\n]*\) is killed by signal: Killed",
            re.MULTILINE,
        ),
    ),
    (
        "gpu_oom",
        re.compile(
            rb"OutOfMemoryError|(?:CUDA|HIP) out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
            rb"|cudaErrorMemoryAllocation|cudaMalloc failed: out of memory|CUBLAS_STATUS_ALLOC_FAILED"
            rb"|CUDNN_STATUS_ALLOC_FAILED|OOM when allocating tensor|Dst tensor is not initialized"
            rb"|[Ff]ree memory [^\n]{0,120}less than desired"
            rb"|RESOURCE_EXHAUSTED(?![^\n]{0,40}[Qq]uota)[^\n]{0,200}?(?:[Oo]ut of memory|allocat)"
        ),
    ),
)
_OTHERS = re.compile(rb"(?:[Pp]rocess (\d+)) has ([\d.]+) ([GM])iB memory in use")
_EXCEPTION = re.compile(
    rb"^(?:\[[^\]\n]{0,40}\]:? ?)?"
    rb"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Failure)\w*)(?::|$)([^\n]*)",
    re.MULTILINE,
)
_FOLLOWS = re.compile(
    rb"ChildFailedError|CalledProcessError|BrokenPipeError|ConnectionResetError|SystemExit|ProcessRaisedException"
    rb"|DistBackendError|KeyboardInterrupt|EOFError"
)
"""Exceptions that only tell of another one, in another process."""
_IMPORT = re.compile(rb"^(?:ModuleNotFoundError|ImportError)\b|error while loading shared libraries")
_MASKS = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x#"),
    (re.compile(r"(?<![\w.])(?:/[^\s/:'\",)]+)+/?"), "PATH"),
    (re.compile(r"\d+(?:\.\d+)?"), "#"),
)


@dataclass(frozen=True)
class Evidence:
    """`kind` is gpu_oom, host_oom, shm or "". `others_mib` is what a log says that other processes held."""

    kind: str
    line: str
    signature: str
    env_broken: bool
    others_mib: Optional[int] = None


class _Hit(NamedTuple):
    at: int
    kind: str
    line: bytes


def examine(log: Path) -> Evidence:
    """Read a log. One that isn't there says nothing."""
    try:
        hit = _last_hit(log)
        start, tail = _tail(log)
    except OSError:
        return Evidence("", "", "", False)
    name, line, at = _last_exception(tail)
    if hit is not None and name and start + at > hit.at and not _FOLLOWS.search(name):
        # A line that is itself such a text is found at its own place, or a little before it.
        own = _classify(line)
        hit = hit._replace(line=line) if own else None
    said = hit.line if hit is not None else line or _last_line(tail)
    text = said.decode(errors="replace").strip()[:500]
    broken = bool(_IMPORT.search(line or said))
    return Evidence(hit.kind if hit else "", text, mask(text), broken, _others(hit, log))


def mask(text: str) -> str:
    """A text without what differs between two of a kind: numbers, addresses, paths."""
    for pattern, name in _MASKS:
        text = pattern.sub(name, text)
    return text[:200]


def _last_hit(log: Path) -> Optional[_Hit]:
    found: Optional[_Hit] = None
    with log.open("rb") as source:
        base, kept = 0, b""
        while True:
            piece = source.read(_PIECE)
            if not piece:
                return found
            block = kept + piece
            found = _hit_in(block, base) or found
            kept = block[-_OVERLAP:]
            base += len(block) - len(kept)


def _hit_in(block: bytes, base: int) -> Optional[_Hit]:
    best: Optional[_Hit] = None
    for needle in _NEEDLES:
        end = len(block)
        for _ in range(16):
            at = block.rfind(needle, 0, end)
            if at < 0 or (best is not None and base + at <= best.at):
                break
            line = _around(block, at)
            kind = _classify(line)
            if kind:
                best = _Hit(base + at, kind, line)
                break
            end = at
    return best


def _around(block: bytes, at: int) -> bytes:
    """The line at a place, as much of it as matters."""
    start = max(block.rfind(b"\n", 0, at) + 1, at - 600)
    stop = block.find(b"\n", at)
    return block[start : min(at + 1500, len(block) if stop < 0 else stop)]


def _classify(line: bytes) -> str:
    for kind, pattern in _CLASSES:
        if pattern.search(line):
            return kind
    return ""


def _tail(log: Path) -> tuple[int, bytes]:
    with log.open("rb") as source:
        size = source.seek(0, 2)
        start = max(0, size - _TAIL)
        source.seek(start)
        return start, source.read()


def _last_exception(tail: bytes) -> tuple[bytes, bytes, int]:
    """Name, line and place of the last exception that isn't only the echo of another; empty where there is none."""
    found = (b"", b"", -1)
    for match in _EXCEPTION.finditer(tail):
        if not _FOLLOWS.search(match.group(1)) or not found[0]:
            found = (match.group(1), match.group(0)[:1500], match.start())
    return found


def _last_line(tail: bytes) -> bytes:
    for line in reversed(tail[-20000:].split(b"\n")):
        if line.strip():
            return line[-1500:]
    return b""


def _others(hit: Optional[_Hit], log: Path) -> Optional[int]:
    """MiB that the message gives to other processes; None when it doesn't speak of any."""
    if hit is None or hit.kind != "gpu_oom":
        return None
    with log.open("rb") as source:
        source.seek(max(0, hit.at - 600))
        text = source.read(4096)
    found = [float(size) * (1024 if unit == b"G" else 1) for _, size, unit in _OTHERS.findall(text)]
    return int(sum(found)) if found else None
