"""The cluster behind a lane: calls to its login host, with answers as our own types."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from widelane.config import SlurmSettings
from widelane.errors import ConfigError, LaneUnknownError
from widelane.lanes.slurm.answer import Refusal
from widelane.lanes.slurm.partition import Partition, read_partition
from widelane.lanes.slurm.sight import Job, Sight, read_job, read_sight
from widelane.transport import Host, Program, Request

PROGRAM = Program(("widelane.lanes.slurm.login",))
WORKDIR = "~/widelane"
_SILENCE_SECONDS = 150.0
"""Of one call: a few client commands, of which each ends after 40 s."""
_FRESH_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One call's answer. `refused` is what SLURM's own command said; `held`: another call works on this name."""

    sight: Sight | None
    """None when the queue could not be asked."""
    refused: Refusal | None = None
    command: str = ""
    held: bool = False


class Cluster:
    """One `[lanes.slurm.NAME]`. Every method blocks and raises `LaneAuthError` and `LaneUnknownError`."""

    def __init__(self, lane: str, settings: SlurmSettings, host: Host) -> None:
        self._lane = lane
        self._settings = settings
        self._host = host
        self._root = settings.workdir or WORKDIR
        self._lock = threading.Lock()
        self._partition: tuple[float, Partition] | None = None

    def check(self, probe: str) -> dict[str, Any]:
        """What a create needs on the login host; `probe` is a file to read there, or ""."""
        return self._call("check", {"root": self._root, "probe": probe})

    def partition(self) -> Partition:
        """What the partition holds, read again after half a minute.

        Raises:
            ConfigError: there is no such partition.
        """
        with self._lock:
            kept = self._partition
        if kept is not None and time.monotonic() - kept[0] < _FRESH_SECONDS:
            return kept[1]
        name = self._settings.partition
        told = self._call("room", {"partition": name})
        if told["refused"] is not None:
            raise self._unanswered(told["refused"])
        read = read_partition(told["nodes"], name, self._settings.gpu)
        if read is None:
            what = f"no partition {name!r}" if name else "no default partition"
            raise ConfigError(
                f"{self._lane}: the cluster has {what}",
                hint=f"set partition in [lanes.{self._lane}] to one that `sinfo -s` lists",
            )
        with self._lock:
            self._partition = (time.monotonic(), read)
        return read

    def submit(self, asked: Mapping[str, Any], runner: bytes) -> Answer:
        """One job of this name and attempt; `asked` has name, attempt, intent and options."""
        whole = {**asked, "root": self._root, "script": _text("job.sh"), "keeper": _text("keeper.py")}
        return self._answered(self._call("submit", whole, (runner,)))

    def look(self, name: str) -> Sight:
        """What there is of a name."""
        return self._seen(self._answered(self._call("look", {"root": self._root, "name": name})))

    def delete(self, name: str, silence: float) -> Sight:
        """Cancel the jobs of a name, and take its folder away once nothing of them can be at work."""
        answer = self._answered(self._call("delete", {"root": self._root, "name": name, "silence": silence}))
        if answer.refused is not None:
            raise LaneUnknownError(self._lane, f"{answer.command}: {answer.refused.words}")
        return self._seen(answer)

    def listing(self) -> tuple[Sight, ...]:
        """Everything of ours in the queue and in the folder for work."""
        told = self._call("listing", {"root": self._root})
        if told["refused"] is not None:
            raise self._unanswered(told["refused"])
        jobs: dict[str, list[dict[str, Any]]] = {}
        for row in told["jobs"]:
            jobs.setdefault(read_job(row).name, []).append(row)
        folders = {str(folder["name"]): folder for folder in told["folders"]}
        return tuple(read_sight(jobs.get(name, []), folders.get(name)) for name in sorted({*jobs, *folders}))

    def _call(self, entry: str, asked: Mapping[str, Any], files: tuple[bytes, ...] = ()) -> dict[str, Any]:
        return self._host.call(Request(PROGRAM, entry, asked, files), _SILENCE_SECONDS)

    def _answered(self, told: Mapping[str, Any]) -> Answer:
        refused = told["refused"]
        return Answer(
            sight=None if told["jobs"] is None else read_sight(told["jobs"], told["folder"]),
            refused=None if refused is None else _refusal(refused),
            command="" if refused is None else str(refused["command"]),
            held=bool(told["held"]),
        )

    def _seen(self, answer: Answer) -> Sight:
        if answer.sight is None:
            words = answer.refused.words if answer.refused is not None else ""
            raise LaneUnknownError(self._lane, f"{answer.command}: {words}")
        return answer.sight

    def _unanswered(self, refused: Mapping[str, Any]) -> LaneUnknownError:
        return LaneUnknownError(self._lane, f"{refused['command']}: {_refusal(refused).words}")


def unconfirmed(lane: str, jobs: tuple[Job, ...], seconds: float) -> LaneUnknownError:
    """A cancel that isn't confirmed: nothing may follow, and the job is named."""
    named = ", ".join(f"{job.id} ({job.name}, {job.state})" for job in jobs)
    return LaneUnknownError(
        lane,
        f"job {named} was cancelled {seconds:.0f} s ago and isn't gone",
        hint=f"nothing else is started until it is; ask the cluster's admins about job {', '.join(j.id for j in jobs)}",
        code="cancel_unconfirmed",
    )


def _refusal(refused: Mapping[str, Any]) -> Refusal:
    code = refused["code"]
    # No answer in time is no answer: SLURM's own words for that are the ones the classifier knows.
    return Refusal(1, "Socket timed out: " + str(refused["text"])) if code is None else Refusal(code, refused["text"])


@cache
def _text(name: str) -> str:
    return (resources.files("widelane.lanes.slurm") / name).read_text(encoding="utf-8")
