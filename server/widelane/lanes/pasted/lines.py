"""Outcomes of ssh, of a job behind it, or of a process of this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from widelane.errors import InputError
from widelane.lanes.pasted.judged import Judged, fine
from widelane.lanes.pasted.text import Pasted
from widelane.lanes.ssh.classify import classify
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.transport import judge_ssh

_FORMS = ("rc", "job_rc", "exc_type", "exit_status")
_MISSING = re.compile(r": (?:command )?not found\s*$", re.MULTILINE)
_SILENT = "connection_lost"
"""What ssh's classifier calls words that it has no rule for."""


def judge(pasted: Pasted, kind: str) -> Judged:
    """Judge one; `local` has no line that could fail, so its codes are those of the work."""
    outcome: Mapping[str, Any] | None
    if pasted.document is not None:
        outcome = _checked(pasted.document)
    elif kind == "local":
        outcome = {"job_rc": pasted.code, "log_tail": pasted.words} if pasted.code is not None else None
    else:
        outcome = _of_text(pasted)
    if outcome is None:
        return Judged(_unheard_of(pasted.text))
    if 0 in (outcome.get("rc"), outcome.get("job_rc"), outcome.get("exit_status")) and not outcome.get("exit_signal"):
        return fine("it ended well")
    if outcome.get("pid_alive") is True and outcome.get("job_rc") is None:
        return fine("the process lives and has no exit code yet")
    found = classify(outcome)
    return Judged(found, ran=found.outcome is Outcome.WORKLOAD)


def _checked(document: Mapping[str, Any]) -> Mapping[str, Any]:
    form = next((name for name in _FORMS if name in document), None)
    if form is None:
        hint = "give `rc` and `stderr`, `job_rc` and `log_tail`, or `exc_type` and `message`"
        raise InputError("this is no outcome of ssh", hint=hint, code="not_an_answer")
    value = document[form]
    fits = isinstance(value, str) if form == "exc_type" else value is None or isinstance(value, int)
    if not fits or (form == "rc" and value is None):
        raise InputError(f"{form} is {value!r}, which no outcome of ssh has", code="not_an_answer")
    return document


def _of_text(pasted: Pasted) -> Mapping[str, Any] | None:
    """With its exit code, by that; without, by words that only ssh, a shell or a library says."""
    text = pasted.words
    if pasted.code is not None:
        return {"rc": pasted.code, "stderr": text}
    if judge_ssh(text).code != _SILENT:
        return {"rc": 255, "stderr": text}
    if _MISSING.search(text):
        return {"rc": 127, "stderr": text}
    raised = pasted.exception
    return None if raised is None else {"exc_type": raised[0], "message": raised[1]}


def _unheard_of(text: str) -> Failure:
    return Failure(
        outcome=Outcome.UNKNOWN,
        scope=Scope.LANE,
        code="TEXT",
        message=text.splitlines()[-1][:500],
        body=text[:4000],
        hint="begin it with the exit code: `rc=255 ...`",
    )
