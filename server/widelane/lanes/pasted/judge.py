"""Finds whose answer it is, and has it judged by that lane's own classifier."""

from __future__ import annotations

from importlib import import_module

from widelane.errors import InputError
from widelane.lanes.pasted.judged import Judged
from widelane.lanes.pasted.text import read

KINDS = ("gcp", "slurm", "runpod", "ssh", "local")
_READERS = {"gcp": "compute", "slurm": "cluster", "runpod": "pods", "ssh": "lines", "local": "lines"}


def judge(lane: str, data: bytes) -> Judged:
    """Judge an answer of a lane; `slurm.NAME` and `ssh.NAME` are judged as their kind.

    Raises:
        InputError: no such lane, or nothing that could be an answer.
    """
    kind = lane.partition(".")[0]
    if kind not in KINDS:
        raise InputError(f"no lane named {lane!r}", hint=f"lanes: {', '.join(KINDS)}", code="unknown_lane")
    # Readers know their lanes' classifiers; only the one that is asked for is loaded.
    reader = import_module(f"widelane.lanes.pasted.{_READERS[kind]}")
    judged: Judged = reader.judge(read(data), kind)
    return judged
