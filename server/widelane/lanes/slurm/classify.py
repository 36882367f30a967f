"""One classifier for everything that SLURM answers: refused commands, jobs that wait, jobs that ended.

States and texts decide, never a bare exit code: a job out of memory may call itself FAILED 0:9, and a lost node 0:0.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from widelane.lanes.slurm.answer import JobState, Refusal
from widelane.models.attempt import Failure, Outcome, Scope

_MESSAGE_LIMIT = 500
FORGOTTEN = "Invalid job id specified"

WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "REVOKED",
        "TIMEOUT",
    }
)
"""States after which a job does nothing more. COMPLETING is none of them."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What an answer is. `waits`: time alone may mend it, so the job is left in the queue until its deadline."""

    outcome: Outcome
    scope: Scope
    code: str
    hint: str = ""
    waits: bool = False
    known: bool = True


def classify(answer: Refusal | JobState) -> Failure:
    """Say what an answer is, if it is to be the last one. Never raises; what no rule knows is `unknown`."""
    ruling = rule(answer)
    message = answer.words if isinstance(answer, Refusal) else f"{answer.state} {answer.reason}".strip()
    return Failure(
        outcome=ruling.outcome,
        scope=ruling.scope,
        code=ruling.code,
        message=message[:_MESSAGE_LIMIT],
        body=answer.body,
        outcome_known=ruling.known,
        metric=ruling.code if ruling.outcome is Outcome.QUOTA else None,
        hint=ruling.hint,
    )


def rule(answer: Refusal | JobState) -> Ruling:
    """The first rule that applies decides."""
    if isinstance(answer, Refusal):
        return _refused(answer)
    return _ended(answer) if answer.state.partition(" ")[0] in ENDED else _waiting(answer)


_TRANSIENT = (Outcome.TRANSIENT, Scope.INSTANCE)
_PERMISSION = (Outcome.PERMISSION, Scope.LANE)
_LANE = (Outcome.CONFIG, Scope.LANE)
_RUNG = (Outcome.CONFIG, Scope.RUNG)
_CAPACITY = (Outcome.CAPACITY, Scope.RUNG)
_QUOTA = (Outcome.QUOTA, Scope.RUNG)

_LOST = Ruling(*_TRANSIENT, "NO_ANSWER", known=False)
"""The controller may have taken the job: it is looked for by name before it is sent again."""

FORGOTTEN_JOB = Failure(
    outcome=Outcome.TRANSIENT,
    scope=Scope.INSTANCE,
    code="FORGOTTEN",
    message="the controller has forgotten the job, and there is no accounting to ask",
)
"""A job that worked, and of which nobody knows how it ended."""

_TEXTS: tuple[tuple[str, Ruling], ...] = (
    ("Socket timed out", _LOST),
    ("Zero Bytes were transmitted", _LOST),
    ("Unexpected message received", _LOST),
    ("Unable to contact slurm controller", Ruling(*_TRANSIENT, "CONTROLLER_DOWN")),
    ("Slurm backup controller in standby", Ruling(*_TRANSIENT, "CONTROLLER_DOWN")),
    ("temporarily unable to accept job", Ruling(*_TRANSIENT, "QUEUE_FULL")),
    ("Resource temporarily unavailable", Ruling(*_TRANSIENT, "HOST_BUSY")),
    ("authentication error", Ruling(*_PERMISSION, "MUNGE", "munge doesn't work on the login host: tell its admins")),
    ("Munge encode failed", Ruling(*_PERMISSION, "MUNGE", "munge doesn't work on the login host: tell its admins")),
    (FORGOTTEN, Ruling(*_TRANSIENT, "FORGOTTEN")),
    ("Invalid account", Ruling(*_PERMISSION, "INVALID_ACCOUNT", "set account in the lane's section")),
    ("Access/permission denied", Ruling(*_PERMISSION, "DENIED", "the account may not use this partition")),
    ("group not permitted to use this partition", Ruling(*_PERMISSION, "DENIED", "choose another partition")),
    ("Invalid partition", Ruling(*_LANE, "INVALID_PARTITION", "set partition to one that `sinfo -s` lists")),
    ("invalid partition", Ruling(*_LANE, "INVALID_PARTITION", "set partition to one that `sinfo -s` lists")),
    ("Invalid feature", Ruling(*_LANE, "INVALID_FEATURE", "look at options in the lane's section")),
    ("Invalid qos", Ruling(*_LANE, "INVALID_QOS", "look at options in the lane's section")),
    ("Invalid generic resource", Ruling(*_LANE, "INVALID_GRES", "set gpu to a type that `sinfo -o %G` shows")),
    ("Memory specification can not be satisfied", Ruling(*_RUNG, "MEMORY_TOO_BIG")),
    ("Requested node configuration is not available", Ruling(*_RUNG, "TOO_WIDE")),
    ("time limit is invalid", Ruling(*_RUNG, "TIME_LIMIT")),
    ("Requested partition configuration not available now", Ruling(*_CAPACITY, "PARTITION_DOWN")),
    ("Requested nodes are busy", Ruling(*_CAPACITY, "NODES_BUSY")),
    ("are DOWN, DRAINED", Ruling(*_CAPACITY, "NODES_DOWN")),
    ("command not found", Ruling(*_LANE, "NO_SLURM", "the login host has no SLURM commands on its PATH")),
)
_LIMIT = re.compile(r"\b(?:QOS|Assoc)\w*(?:Limit|GRES|PerJob)\w*\b")


def _refused(answer: Refusal) -> Ruling:
    limit = _LIMIT.search(answer.text)
    if limit is not None or "violates accounting/QOS policy" in answer.text:
        return Ruling(*_QUOTA, limit.group() if limit is not None else "QOS_POLICY")
    # The line with the reason comes before the general one, and is looked at first.
    for text in (answer.words, answer.text):
        for words, ruling in _TEXTS:
            if words in text:
                return ruling
    if answer.code == 127:
        return Ruling(*_LANE, "NO_SLURM", "the login host has no SLURM commands on its PATH")
    if answer.code == 255:
        return Ruling(*_LANE, "BAD_OPTION", "look at options in the lane's section")
    return Ruling(Outcome.UNKNOWN, Scope.RUNG, f"EXIT_{answer.code}")


_PARKED = frozenset(
    {
        "",
        "None",
        "Resources",
        "Priority",
        "ReqNodeNotAvail",
        "NodeDown",
        "Reservation",
        "Cleaning",
        "BeginTime",
        "Dependency",
        "Prolog",
        "JobHeldUser",
        "JobHeldAdmin",
    }
)
_MISTAKES = frozenset({"BadConstraints", "PartitionConfig"})
_REFUSED_ACCOUNT = frozenset({"AccountNotAllowed", "AssociationJobNotAllowed", "QOSNotAllowed"})
_NEVER = re.compile(r"PerJob|MaxWall|^QOSMin")
"""Limits on one job: no other job's end makes room under them."""


def _waiting(answer: JobState) -> Ruling:
    word = answer.word
    if word == "BeginTime" and answer.restarts > 0:
        return Ruling(Outcome.PREEMPTED, Scope.RUNG, "REQUEUED", waits=True)
    if word in _PARKED:
        return Ruling(*_CAPACITY, word or "None", waits=True)
    return next((found for rule_of in _REASONS if (found := rule_of(word)) is not None), _unheard_of(word))


def _unheard_of(word: str) -> Ruling:
    return Ruling(Outcome.UNKNOWN, Scope.RUNG, word, waits=True)


def _closed(word: str) -> Ruling | None:
    return Ruling(*_CAPACITY, word) if word in {"PartitionDown", "PartitionInactive"} else None


def _forbidden(word: str) -> Ruling | None:
    return Ruling(*_PERMISSION, word, "set account in the lane's section") if word in _REFUSED_ACCOUNT else None


def _mistaken(word: str) -> Ruling | None:
    partition_limit = word.startswith("Partition") and word.endswith("Limit")
    if partition_limit or word in _MISTAKES:
        return Ruling(*_RUNG, word)
    return Ruling(*_LANE, word) if word.startswith("Invalid") else None


def _limited(word: str) -> Ruling | None:
    if not word.startswith(("QOS", "Assoc", "Licenses", "MaxMemPerLimit")):
        return None
    return Ruling(*_QUOTA, word, waits=_NEVER.search(word) is None)


def _stuck(word: str) -> Ruling | None:
    if word == "DependencyNeverSatisfied":
        return Ruling(Outcome.WORKLOAD, Scope.INSTANCE, word)
    # Held by SLURM after it could not be launched: it never starts by itself.
    return Ruling(*_TRANSIENT, "LAUNCH_FAILED") if re.match(r"launch[ _]failed", word) else None


_REASONS: tuple[Callable[[str], Ruling | None], ...] = (_closed, _forbidden, _mistaken, _limited, _stuck)

_HOST_OOM = re.compile(r"oom-kill event|oom_kill|Out Of Memory|Exceeded job memory limit|Memory cgroup out of memory")
_GPU_OOM = re.compile(r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|OutOfMemoryError")
_RESUME = "what has a record is kept; give it more time, or smaller units, and dispatch it again"


def _ended(answer: JobState) -> Ruling:
    state = answer.state.partition(" ")[0]
    if state == "OUT_OF_MEMORY" or (state == "FAILED" and _host_memory(answer)):
        return _workload("OUT_OF_MEMORY", "the job needs more memory: see options in the lane's section")
    if state == "FAILED" and _GPU_OOM.search(answer.log_tail):
        return _workload("CUDA_OUT_OF_MEMORY", "a GPU was too small: a smaller batch, or more GPUs a unit")
    if state == "FAILED" and answer.word == "BadConstraints":
        return Ruling(*_RUNG, answer.word)
    if state == "FAILED" and answer.exit_code == "0:53":
        return Ruling(*_LANE, "NO_OUTPUT_FOLDER", "workdir must be a folder that the nodes see too")
    fixed = _STATES.get(state)
    if fixed is not None:
        return fixed
    return _workload(f"EXIT_{answer.exit_code.partition(':')[0] or 'UNKNOWN'}")


def _host_memory(answer: JobState) -> bool:
    return answer.derived_exit_code == "0:125" or _HOST_OOM.search(answer.log_tail) is not None


def _workload(code: str, hint: str = "") -> Ruling:
    return Ruling(Outcome.WORKLOAD, Scope.INSTANCE, code, hint)


_STATES = {
    "TIMEOUT": _workload("TIMEOUT", _RESUME),
    "DEADLINE": _workload("DEADLINE", _RESUME),
    "CANCELLED": _workload("CANCELLED", "somebody else cancelled the job"),
    "REVOKED": _workload("CANCELLED", "somebody else cancelled the job"),
    "PREEMPTED": Ruling(Outcome.PREEMPTED, Scope.RUNG, "PREEMPTED"),
    "NODE_FAIL": Ruling(*_TRANSIENT, "NODE_FAIL"),
    "BOOT_FAIL": Ruling(*_TRANSIENT, "BOOT_FAIL"),
    "COMPLETED": Ruling(Outcome.UNKNOWN, Scope.RUNG, "NO_RESULT", "the job ended without its last word"),
}
