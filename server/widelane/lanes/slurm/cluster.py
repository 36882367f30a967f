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
from widelane.lanes.slurm.sight import SILENCE_SECONDS, Job, Sight, read_job, read_sight
from widelane.store.depot import DEPOT
from widelane.transport import Host, Program, Request

PROGRAM = Program(
    (
        *DEPOT,
        "widelane.lanes.slurm.far.commands",
        "widelane.lanes.slurm.far.folder",
        "widelane.lanes.slurm.far.login",
    )
)
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
    depot: str = ""
    """Where the folder's own store is, or would be."""
    news: Mapping[str, Any] | None = None
    """What became new in it, where that was asked for."""


class Cluster:
    """One `[lanes.slurm.NAME]`. Every method blocks and raises `LaneAuthError` and `LaneUnknownError`."""

    def __init__(self, lane: str, settings: SlurmSettings, host: Host) -> None:
        self._lane = lane
        self._settings = settings
        self._host = host
        self._root = settings.workdir or WORKDIR
        self._lock = threading.Lock()
        self._partition: tuple[float, Partition] | None = None

    @property
    def host(self) -> Host:
        """The login host."""
        return self._host

    def check(self) -> dict[str, Any]:
        """What a create lacks on the login host: `missing` commands, `trouble` with the folder for work."""
        return self._call("check", {"root": self._root})

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

    def claim(self, name: str, attempt: str) -> Answer:
        """Make the folder of a name for an attempt, with a store in it; nothing is submitted."""
        return self._answered(self._call("claim", {"root": self._root, "name": name, "attempt": attempt}))

    def submit(self, asked: Mapping[str, Any], runner: bytes) -> Answer:
        """One job of this name and attempt; `asked` has name, attempt, intent and options."""
        whole = {**asked, "root": self._root, "script": _text("job.sh"), "keeper": _text("keeper.py")}
        return self._answered(self._call("submit", whole, (runner,)))

    def look(self, name: str, since: int | None = None) -> tuple[Sight, Answer]:
        """What there is of a name; with `since`, also what became new in its own store since then."""
        answer = self._answered(self._call("look", {"root": self._root, "name": name, "since": since}))
        return self._seen(answer), answer

    def cancel(self, name: str) -> Sight:
        """Cancel the jobs of a name; what is left of them."""
        return self._done(self._call("cancel", {"root": self._root, "name": name}))

    def remove(self, name: str) -> Sight:
        """Take the folder of a name away if nothing of its job can be at work; what is left."""
        return self._done(self._call("remove", {"root": self._root, "name": name, "silence": SILENCE_SECONDS}))

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
            depot=str(told["depot"]),
            news=told.get("news"),
        )

    def _done(self, told: Mapping[str, Any]) -> Sight:
        answer = self._answered(told)
        if answer.refused is not None:
            raise LaneUnknownError(self._lane, f"{answer.command}: {answer.refused.words}")
        return self._seen(answer)

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
    return (resources.files("widelane.lanes.slurm.far") / name).read_text(encoding="utf-8")
