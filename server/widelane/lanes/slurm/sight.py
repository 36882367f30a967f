"""What a cluster shows of one name, its jobs and its folder taken together. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from widelane.lanes.protocol import Machine, MachineState
from widelane.lanes.slurm.answer import JobState
from widelane.lanes.slurm.classify import ENDED, FORGOTTEN_JOB, WAITING, classify
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.plan import ProvisioningModel

SILENCE_SECONDS = 30.0
"""A keeper that gave no sign of life for so long, on a node that SLURM gave up, counts as dead."""
_LOST = frozenset({"NODE_FAIL", ""})


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as the controller or accounting shows it. `labels` come from its comment."""

    id: str
    name: str
    state: str
    reason: str
    start: str
    """When it began, or is expected to; "" when nobody knows. In the cluster's own time."""
    nodes: str
    labels: Mapping[str, str]
    exit_code: str = ""
    derived_exit_code: str = ""
    restarts: int = 0

    @property
    def ended(self) -> bool:
        """Whether it does nothing any more."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of a name. `job` is the job submitted, `claim` the one that began to work; "" for none."""

    name: str
    job: str
    attempt: str
    claim: str
    ended: str
    cancelled_seconds: float | None
    """How long ago its job was cancelled; None when it wasn't."""
    intent: Mapping[str, Any]
    deleting: bool
    silent_seconds: float
    progress: str
    log: str


@dataclass(frozen=True, slots=True)
class Sight:
    """Jobs of one name, and its folder."""

    jobs: tuple[Job, ...]
    folder: Folder | None

    @property
    def live(self) -> tuple[Job, ...]:
        """Jobs that wait, work, or are ending."""
        return tuple(job for job in self.jobs if not job.ended)

    @property
    def job(self) -> Job | None:
        """The job that counts: the one that claimed the work, else one that lives, else the one submitted."""
        folder = self.folder
        wanted = [folder.claim, folder.job] if folder is not None else []
        by_id = {job.id: job for job in self.jobs}
        claimed = by_id.get(wanted[0]) if wanted else None
        if claimed is not None:
            return claimed
        return next(iter(self.live), None) or (by_id.get(wanted[1]) if wanted else None)

    @property
    def ran(self) -> bool:
        """Whether its work began, or could have: a job that waited to its end never had a node."""
        job, folder = self.job, self.folder
        return bool(folder is not None and folder.claim) or bool(job is not None and job.nodes)

    @property
    def attempt(self) -> str:
        """Whose it is."""
        job = self.job
        if self.folder is not None and self.folder.attempt:
            return self.folder.attempt
        return job.labels.get("widelane-attempt", "") if job is not None else ""

    def standing(self) -> JobState | None:
        """The job in the classifier's words; None when nobody knows it any more."""
        job = self.job
        if job is None:
            return None
        return JobState(
            state=job.state,
            reason=job.reason,
            exit_code=job.exit_code,
            derived_exit_code=job.derived_exit_code,
            restarts=job.restarts,
            log_tail=self.folder.log if self.folder is not None else "",
        )

    def state(self) -> MachineState | None:
        """What it is as a machine; None when there is none: no job that lives, and no folder but a deleted one's."""
        job, folder = self.job, self.folder
        if folder is None and not self.live:
            return None
        if job is None or job.ended:
            return self._state_after(job)
        if job.state == "COMPLETING" or (folder is not None and folder.deleting):
            return MachineState.STOPPING
        return MachineState.QUEUED if job.state in WAITING else MachineState.RUNNING

    def machine(self, zone: str) -> Machine | None:
        """The machine, with the reason for its end when it has ended."""
        state = self.state()
        if state is None:
            return None
        job, folder = self.job, self.folder
        intent: Mapping[str, Any] = folder.intent if folder is not None else {}
        labels: dict[str, str] = {**(job.labels if job is not None else {}), **intent.get("labels", {})}
        return Machine(
            name=folder.name if folder is not None else self.jobs[0].name,
            zone=zone,
            id=job.id if job is not None else (folder.job if folder is not None else ""),
            state=state,
            machine_type=str(intent.get("machine_type", labels.get("widelane-type", ""))),
            provisioning_model=ProvisioningModel.STANDARD.value,
            attempt_id=self.attempt,
            labels=labels,
            created_at=str(intent.get("created_at", "")),
            progress=folder.progress if folder is not None else "",
            end=self.end() if state is MachineState.STOPPED else None,
        )

    def end(self) -> Failure:
        """Why it ended, for when its host said nothing."""
        standing = self.standing()
        if standing is not None:
            return classify(standing)
        if self.ran:
            return FORGOTTEN_JOB
        return Failure(
            outcome=Outcome.QUEUE_VANISHED,
            scope=Scope.RUNG,
            code="QUEUE_VANISHED",
            message="the queue doesn't know the job any more, and it never ran",
        )

    def _state_after(self, job: Job | None) -> MachineState | None:
        """Of something that the queue has let go of, or never had."""
        folder = self.folder
        if folder is None:
            return MachineState.STOPPED
        if self._may_work(job, folder):
            return MachineState.STOPPING
        if folder.deleting and not self.live:
            return None
        if job is None and not folder.job and not folder.claim:
            return MachineState.STARTING
        return MachineState.STOPPED

    def _may_work(self, job: Job | None, folder: Folder) -> bool:
        """Whether a node that SLURM has lost, or a job that it has forgotten, may still be at it."""
        if not folder.claim or folder.ended:
            return False
        return (job.state if job is not None else "") in _LOST and folder.silent_seconds < SILENCE_SECONDS


def read_sight(jobs: list[dict[str, Any]], folder: dict[str, Any] | None) -> Sight:
    """A sight from the login host's answer."""
    return Sight(tuple(read_job(job) for job in jobs), None if folder is None else _folder(folder))


def read_job(row: Mapping[str, Any]) -> Job:
    """One job of an answer."""
    pairs = (word.partition("=") for word in str(row["comment"]).split(",") if "=" in word)
    start = str(row["start"])
    restarts = str(row.get("restarts", ""))
    return Job(
        id=str(row["id"]),
        name=str(row["name"]),
        state=str(row["state"]).partition(" ")[0],
        reason=str(row["reason"]),
        start="" if start in ("N/A", "Unknown") else start,
        nodes="" if row["nodes"] in ("None assigned", "(null)") else str(row["nodes"]),
        labels={key: value for key, _, value in pairs},
        exit_code=str(row.get("exit_code", "")),
        derived_exit_code=str(row.get("derived_exit_code", "")),
        restarts=int(restarts) if restarts.isdigit() else 0,
    )


def _folder(row: Mapping[str, Any]) -> Folder:
    cancelled = str(row["cancelled"])
    return Folder(
        name=str(row["name"]),
        job=str(row["job"]),
        attempt=str(row["attempt"]),
        claim=str(row["claim"]),
        ended=str(row["ended"]),
        cancelled_seconds=float(row["now"]) - float(cancelled) if cancelled else None,
        intent=row["intent"] or {},
        deleting=bool(row["deleting"]),
        silent_seconds=float(row["silent"]),
        progress="" if row["progress"] is None else json.dumps(row["progress"]),
        log=str(row["log"]),
    )
