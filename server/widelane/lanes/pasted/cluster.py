"""Answers of SLURM: what a command said, or the line that shows a job's state, by squeue, sacct or scontrol."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from widelane.errors import InputError
from widelane.lanes.pasted.judged import Judged, fine
from widelane.lanes.pasted.text import Pasted
from widelane.lanes.slurm.answer import JobState, Refusal, read
from widelane.lanes.slurm.classify import ENDED, WAITING, classify, rule

_AT_WORK = frozenset({"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "SIGNALING", "STAGE_OUT", "STOPPED"})
_STATES = ENDED | WAITING | _AT_WORK
_SHORT = {
    "PD": "PENDING",
    "R": "RUNNING",
    "CG": "COMPLETING",
    "CF": "CONFIGURING",
    "CD": "COMPLETED",
    "CA": "CANCELLED",
    "F": "FAILED",
    "TO": "TIMEOUT",
    "NF": "NODE_FAIL",
    "PR": "PREEMPTED",
    "BF": "BOOT_FAIL",
    "DL": "DEADLINE",
    "OOM": "OUT_OF_MEMORY",
}
"""squeue's two letters."""
_COMMAND = re.compile(
    r"\b(?:sbatch|srun|salloc|squeue|sinfo|scancel|scontrol|slurm_\w+|munge):? .*"
    r"|\berror: |Batch job submission failed|command not found|Invalid job id",
    re.IGNORECASE,
)
_TOLD: tuple[tuple[re.Pattern[str], JobState], ...] = (
    (re.compile(r"DUE TO TIME LIMIT"), JobState("TIMEOUT", "TimeLimit")),
    (re.compile(r"DUE TO PREEMPTION"), JobState("PREEMPTED")),
    (re.compile(r"DUE TO NODE FAILURE"), JobState("NODE_FAIL", "NodeDown")),
    (re.compile(r"oom[-_]kill event|OUT OF MEMORY|Out Of Memory"), JobState("OUT_OF_MEMORY", "OutOfMemory")),
)
"""What slurmstepd writes into a job's log."""
_PAIR = re.compile(r"\b(JobState|Reason|ExitCode|DerivedExitCode|Restarts)=(\S+)")
_EXIT = re.compile(r"^\d+:\d+$")
_WORD = re.compile(r"^[A-Za-z_]+(?:,.*)?$")


def judge(pasted: Pasted, _kind: str) -> Judged:
    """Judge one."""
    answer = _of_document(pasted.document) if pasted.document is not None else _of_text(pasted)
    if isinstance(answer, Refusal):
        return fine("the command succeeded", answer.body) if answer.code == 0 else Judged(classify(answer))
    state = answer.state.partition(" ")[0]
    if state in _AT_WORK:
        return fine(f"the job is {state}", answer.body)
    if state == "COMPLETED":
        return fine("the job ended well; what it did is in its records", answer.body)
    if state not in _STATES:
        raise InputError(f"{answer.state!r} is no state of a job", code="not_an_answer")
    found = classify(answer)
    return Judged(found, waits=state in WAITING and rule(answer).waits, ran=state in ENDED)


def _of_document(document: Mapping[str, Any]) -> Refusal | JobState:
    """The table's forms, or a job as `squeue --json` and `sacct --json` write it."""
    listed = document.get("jobs")
    if isinstance(listed, list):
        jobs = cast("list[object]", listed)
        if len(jobs) != 1 or not isinstance(jobs[0], dict):
            raise InputError(f"a list of {len(jobs)} jobs", hint="give one job at a time", code="several_answers")
        document = cast("Mapping[str, Any]", jobs[0])
    shown = document.get("job_state")
    if shown is None:
        return read(document)
    states: list[object] = cast("list[object]", shown) if isinstance(shown, list) else [shown]
    restarts = document.get("restart_cnt", 0)
    return JobState(
        state=str(states[0]) if states else "",
        reason=str(document.get("state_reason", "")),
        restarts=restarts if isinstance(restarts, int) else 0,
    )


def _of_text(pasted: Pasted) -> Refusal | JobState:
    text = pasted.words
    pairs = dict(_PAIR.findall(text))
    if "JobState" in pairs:
        return JobState(
            state=pairs["JobState"],
            reason=pairs.get("Reason", ""),
            exit_code=pairs.get("ExitCode", ""),
            derived_exit_code=pairs.get("DerivedExitCode", ""),
            restarts=int(pairs["Restarts"]) if pairs.get("Restarts", "").isdecimal() else 0,
        )
    told = next((state for pattern, state in _TOLD if pattern.search(text)), None)
    if told is not None:
        return replace(told, log_tail=text)
    if pasted.code is None and re.search(r"^Submitted batch job \d+", text, re.MULTILINE):
        return Refusal(0, text)
    line = None if pasted.code is not None or _COMMAND.search(text) else _state_line(text)
    if line is not None:
        return line
    code = pasted.code if pasted.code is not None else 127 if "command not found" in text else 1
    return Refusal(code, text)


def _state_line(text: str) -> JobState | None:
    """The last line that has a state as a word of its own; what follows it is reason, codes and restarts."""
    for line in reversed(text.splitlines()):
        words = line.replace("|", " ").split()
        for place, word in enumerate(words):
            state = _state_of(word, first=place == 0)
            if state:
                return replace(_job(state, words[place + 1 :], line), log_tail=text)
    return _reason_alone(text)


def _state_of(word: str, *, first: bool) -> str:
    """sacct cuts long words and marks them with `+`; two letters stand in the middle of a line of squeue."""
    if word in _STATES:
        return word
    if not first and word in _SHORT:
        return _SHORT[word]
    if len(word) > 3 and word.endswith("+"):
        return next((state for state in sorted(_STATES) if state.startswith(word[:-1])), "")
    return ""


def _job(state: str, rest: list[str], line: str) -> JobState:
    codes = [word for word in rest if _EXIT.match(word) and ":" in word]
    shown = re.search(r"\(([^)]*)\)\s*$", line)
    named = [word for word in rest if _WORD.match(word) and "=" not in word]
    restarts = re.search(r"\brestarts=(\d+)", line, re.IGNORECASE)
    # squeue's elapsed time looks like an exit code; only jobs that ended have one.
    ended = state in ENDED
    return JobState(
        state=state,
        reason=shown.group(1) if shown is not None else " ".join(named if state in WAITING else named[:1]),
        exit_code=codes[0] if ended and codes else "",
        derived_exit_code=codes[1] if ended and len(codes) > 1 else "",
        restarts=int(restarts.group(1)) if restarts is not None else 0,
    )


def _reason_alone(text: str) -> JobState | None:
    """`(Resources)`, as squeue shows it."""
    found = re.fullmatch(r"\(([A-Za-z_]+(?:,[^)]*)?)\)", text.strip())
    return JobState("PENDING", found.group(1)) if found is not None else None
