"""One classifier for what ssh, or a job behind it, came to. A lost line is never a job that failed.

`run` is a command by the system's ssh, `job` one whose own exit code was written on the host, and `library` what an
ssh library for Python raised or returned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from widelane.models.attempt import Failure, Outcome, Scope
from widelane.transport import Sort, judge_ssh

_LIMIT = 500
_OUTCOMES = {Sort.AUTH: Outcome.PERMISSION, Sort.CONFIG: Outcome.CONFIG, Sort.TRANSIENT: Outcome.TRANSIENT}
_BEFORE = re.compile(
    r"ssh: connect to host|could not resolve|kex_exchange|banner exchange|^connection (?:closed|reset) by",
    re.IGNORECASE | re.MULTILINE,
)
"""Said before a command could run."""
_OUT_OF_MEMORY = re.compile(r"out of memory|oom-kill|cannot allocate memory|OutOfMemoryError", re.IGNORECASE)
_LIBRARY = {
    "PermissionDenied": (Outcome.PERMISSION, "login_refused"),
    "HostKeyNotVerifiable": (Outcome.PERMISSION, "host_key_unknown"),
    "ChannelOpenError": (Outcome.TRANSIENT, "no_channel"),
    "ConnectionLost": (Outcome.TRANSIENT, "connection_lost"),
    "DisconnectError": (Outcome.TRANSIENT, "connection_lost"),
}


@dataclass(frozen=True, slots=True)
class _Ruling:
    outcome: Outcome
    code: str
    message: str
    known: bool = True
    hint: str = ""


def classify(document: Mapping[str, Any]) -> Failure:
    """Say what an outcome is. Never raises; one that no rule knows is `unknown`.

    `document` has `rc` and `stderr`; or `job_rc`, `pid_alive` and `log_tail`; or `exc_type` and `message`, or
    `exit_status` and `exit_signal`.
    """
    ruling = _rule(document)
    return Failure(
        outcome=ruling.outcome,
        scope=Scope.INSTANCE if ruling.outcome in (Outcome.WORKLOAD, Outcome.TRANSIENT) else Scope.LANE,
        code=ruling.code,
        message=ruling.message[:_LIMIT],
        body=str(dict(document))[:4000],
        outcome_known=ruling.known,
        hint=ruling.hint,
    )


def _rule(document: Mapping[str, Any]) -> _Ruling:
    if "job_rc" in document:
        return _job(document)
    if "exc_type" in document:
        return _raised(str(document["exc_type"]), str(document.get("message", "")))
    if "exit_status" in document:
        return _returned(document)
    if "rc" in document:
        return _run(document["rc"], str(document.get("stderr", "")))
    return _Ruling(Outcome.UNKNOWN, "unreadable", "this is no outcome of ssh")


def _run(code: Any, said: str) -> _Ruling:
    if code != 255:
        last = said.strip().splitlines()[-1:] or [f"exit code {code}"]
        return _Ruling(Outcome.WORKLOAD, f"exit_{code}", last[0])
    trouble = judge_ssh(said)
    known = trouble.sort is not Sort.TRANSIENT or _BEFORE.search(said) is not None
    hint = {
        Sort.AUTH: "log in once by hand: `ssh HOST`",
        Sort.CONFIG: "see what `ssh -v HOST` says",
        Sort.TRANSIENT: "" if known else "the command may have run: ask the host before anything is repeated",
    }
    return _Ruling(_OUTCOMES[trouble.sort], trouble.code, trouble.message, known, hint[trouble.sort])


def _job(document: Mapping[str, Any]) -> _Ruling:
    code, log = document["job_rc"], str(document.get("log_tail", ""))
    if code is None:
        if document.get("pid_alive"):
            return _Ruling(Outcome.UNKNOWN, "still_running", "the process lives and has no exit code yet")
        return _Ruling(Outcome.WORKLOAD, "lost", "the process is gone without an exit code: killed, or the host booted")
    if _OUT_OF_MEMORY.search(log):
        return _Ruling(Outcome.WORKLOAD, "out_of_memory", log.strip().splitlines()[-1], hint="ask for more memory")
    return _Ruling(Outcome.WORKLOAD, f"exit_{code}", f"exit code {code}")


def _raised(name: str, message: str) -> _Ruling:
    outcome, code = _LIBRARY.get(name.rpartition(".")[2], (Outcome.UNKNOWN, "unknown"))
    return _Ruling(outcome, code, message, known=outcome is not Outcome.TRANSIENT or code == "no_channel")


def _returned(document: Mapping[str, Any]) -> _Ruling:
    signal = document.get("exit_signal")
    if signal:
        name = str(cast("list[object]", signal)[0]) if isinstance(signal, list) else str(signal)
        return _Ruling(Outcome.WORKLOAD, f"signal_{name}", f"ended by signal {name}")
    if document["exit_status"] is None:
        return _Ruling(
            Outcome.TRANSIENT, "connection_lost", "the line was lost in the middle of the command", known=False
        )
    return _run(document["exit_status"], str(document.get("stderr", "")))
