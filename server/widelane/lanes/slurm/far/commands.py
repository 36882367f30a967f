"""SLURM's client commands, and their answers as rows."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from typing import Any

COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")
MARK = "widelane=1"
"""Stands in the comment of every job of ours."""
_COLUMNS = ("id", "name", "state", "reason", "start", "nodes", "comment")
_ROW = "row|%i|%j|%T|%r|%S|%N|%k"
_NODE_COLUMNS = ("node", "partition", "state", "cpus", "memory", "limit", "gres")
_NODE_ROW = "row|%N|%P|%t|%c|%m|%l|%G"
_ACCOUNT = (
    ("id", "JobID"),
    ("state", "State"),
    ("exit_code", "ExitCode"),
    ("derived_exit_code", "DerivedExitCode"),
    ("nodes", "NodeList"),
)
_DETAILS = {"Reason": "reason", "ExitCode": "exit_code", "DerivedExitCode": "derived_exit_code", "Restarts": "restarts"}
_SECONDS = 40.0


class RefusedError(Exception):
    """A client command that failed; `answer` has its name, exit code (None: it took too long) and words."""

    def __init__(self, command: str, code: int | None, text: str) -> None:
        super().__init__(command)
        self.answer = {"command": command, "code": code, "text": text}


def run(command: str, *options: str, text: str = "") -> str:
    """What a client command printed. Raises `RefusedError`."""
    try:
        done = subprocess.run(
            [command, *options], input=text.encode(), capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(command, None, f"{command} didn't answer within {_SECONDS:g} s") from None
    except FileNotFoundError:
        raise RefusedError(command, 127, f"{command}: command not found") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace") or done.stdout.decode(errors="replace")
        raise RefusedError(command, done.returncode, said)
    return done.stdout.decode(errors="replace")


def find_commands() -> None:
    """Where a plain ssh command doesn't see SLURM, a login shell may."""
    if shutil.which(COMMANDS[0]) is not None:
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError, IndexError):
        shell = os.environ.get("SHELL") or "/bin/sh"
        told = subprocess.run(
            [shell, "-lc", 'printf "\\n%s" "$PATH"'],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=True,
        )
        os.environ["PATH"] = told.stdout.decode(errors="replace").splitlines()[-1]


def missing_commands() -> list[str]:
    """Those that can't be found."""
    return [command for command in COMMANDS if shutil.which(command) is None]


def jobs(*options: str) -> list[dict[str, Any]]:
    """This user's jobs with our mark; with `-t all` also those that ended, while the controller remembers them."""
    shown = run("squeue", "-h", "-u", str(os.getuid()), *options, "-o", _ROW)
    return [job for job in _rows(shown, _COLUMNS) if MARK in job["comment"].split(",")]


def nodes(partition: str) -> list[dict[str, Any]]:
    """The nodes of a partition, or of all for ""; one that is in several stands there for each."""
    options = ["-p", partition] if partition else []
    return _rows(run("sinfo", "-h", "-N", *options, "-o", _NODE_ROW), _NODE_COLUMNS)


def with_details(found: list[dict[str, Any]], name: str, kept: str) -> list[dict[str, Any]]:
    """The jobs with what squeue has no columns for; and the job `kept`, which the controller may have forgotten."""
    known = [{**job, **_details(job["id"])} for job in found]
    if kept and kept not in [job["id"] for job in found]:
        known += [{**job, "name": name} for job in _accounted(kept)]
    return known


def _details(job: str) -> dict[str, Any]:
    try:
        shown = run("scontrol", "-o", "show", "job", job)
    except RefusedError:
        return {}
    pairs = [word.partition("=") for word in shown.split() if "=" in word]
    words = {key: value for key, _, value in pairs}
    return {name: words[key] for key, name in _DETAILS.items() if key in words}


def _accounted(job: str) -> list[dict[str, Any]]:
    """A job as accounting has it; none where there is no accounting."""
    fields = ",".join(field for _, field in _ACCOUNT)
    try:
        shown = run("sacct", "-n", "-X", "-P", "-j", job, "-o", fields)
    except RefusedError:
        return []
    rows = "\n".join(f"row|{line}" for line in shown.splitlines() if line.startswith(f"{job}|"))
    blank = dict.fromkeys(_COLUMNS, "")
    return [{**blank, **row, "comment": MARK} for row in _rows(rows, tuple(name for name, _ in _ACCOUNT))]


def _rows(shown: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Lines of the form `row|...` with a value for each column; what else stands between them is no answer."""
    lines = [line.split("|", len(columns))[1:] for line in shown.splitlines() if line.startswith("row|")]
    return [
        {name: values[place] for place, name in enumerate(columns)} for values in lines if len(values) == len(columns)
    ]
