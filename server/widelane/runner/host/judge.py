"""The verdict on an attempt: exit code, outputs, and on any other end why. Given by its supervisor."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

from . import outputs
from .attempt import Record

_LOOK_AGAIN = 0.25
_VMSTAT = Path("/proc/vmstat")
_CGROUPS = Path("/sys/fs/cgroup")


def oom_kills() -> dict[str, int]:
    """Processes that the kernel ended for want of memory so far: in our cgroup, and on this machine."""
    found: dict[str, int] = {}
    for name, path, key in (("cgroup", _memory_events(), "oom_kill"), ("machine", _VMSTAT, "oom_kill")):
        try:
            lines = path.read_text().splitlines() if path else []
        except OSError:
            continue
        for line in lines:
            if line.split()[:1] == [key]:
                found[name] = int(line.split()[1])
    return found


def _memory_events() -> Optional[Path]:
    """Of version 2 `memory.events`, of version 1 `memory.oom_control`."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        number, controllers, place = line.split(":", 2)
        for path in (
            _CGROUPS / place.lstrip("/") / "memory.events" if number == "0" else None,
            _CGROUPS / "memory" / place.lstrip("/") / "memory.oom_control" if "memory" in controllers else None,
        ):
            if path is not None and path.exists():
                return path
    return None


def base_and_pattern(cwd: Path, path: str) -> tuple[Path, str]:
    """An output's folder and its pattern in it. Absolute ones, and those that climb, count from the top."""
    if Path(path).is_absolute() or ".." in Path(path).parts:
        return Path("/"), os.path.normpath(cwd / path).lstrip("/")
    return cwd, path


def snapshot(cwd: Path, declared: Iterable[Record]) -> outputs.Marks:
    """What of the declared outputs is there before the start, by absolute path."""
    found: outputs.Marks = {}
    for one in declared:
        base, pattern = base_and_pattern(cwd, one["path"])
        for path, marks in outputs.snapshot(base, [pattern]).items():
            found[str(base / path)] = marks
    return found


def judge(record: Record, request: Record, start: Record, log: Path) -> Record:
    """The verdict: `reason` is "" for success; `detail` is for people; `signature` is one for all of a kind."""
    rules, cwd = request["judge"], Path(request["cwd"])
    reason, detail = _by_record(record, rules)
    if reason == "":
        return _by_outputs(cwd, rules, start["before"])
    partial = _files(cwd, rules["outputs"], start["before"])[1]
    verdict: dict[str, Any] = {"reason": reason, "detail": detail, "signature": "", "partial": partial}
    if reason in ("exit", "signal"):
        _explain(verdict, record, log, start.get("oom_kills", {}))
    return verdict


def _by_record(record: Record, rules: Record) -> tuple[str, str]:
    """Class and text by the exit record alone; ("", "") for an exit code that means success."""
    if record.get("spawn_error"):
        return "spawn_error", str(record["spawn_error"])
    if record.get("timed_out"):
        return "timeout", f"took more than {rules['timeout']} s"
    if record["signal"] is not None:
        return "signal", f"ended by signal {record['signal']}"
    if record["exit_code"] in rules["success_codes"]:
        return "", ""
    if record["exit_code"] in rules["env_codes"]:
        return "env_broken", f"exit code {record['exit_code']}"
    return "exit", f"exit code {record['exit_code']}"


def _explain(verdict: dict[str, Any], record: Record, log: Path, before: dict[str, int]) -> None:
    """Look for out of memory, strongest evidence first."""
    from .evidence import examine  # noqa: PLC0415 - most attempts need none of it, and every supervisor shares the zygote's memory

    found = examine(log)
    killed = record["signal"] == signal.SIGKILL or record["exit_code"] == 128 + signal.SIGKILL
    now = oom_kills()
    rose = [name for name in ("cgroup", "machine") if now.get(name, 0) > before.get(name, now.get(name, 0))]
    if killed and not record.get("stopped") and rose:
        verdict["reason"] = "host_oom"
        verdict["detail"] = f"killed, and the {rose[0]}'s count of out-of-memory kills rose"
    elif "cgroup" in rose and found.kind in ("", "host_oom"):
        verdict["reason"], verdict["detail"] = "host_oom", "the cgroup's count of out-of-memory kills rose"
    elif found.kind:
        verdict["reason"], verdict["detail"] = found.kind, found.line
    elif found.line:
        verdict["detail"] = f"{verdict['detail']}: {found.line}"
    verdict["others_mib"] = found.others_mib
    verdict["env_broken"] = found.env_broken
    if found.signature:
        verdict["signature"] = f"{verdict['reason']}: {found.signature}"


def _by_outputs(cwd: Path, rules: Record, before: outputs.Marks) -> Record:
    deadline = time.monotonic() + float(rules["output_grace"])
    while True:
        flaw, files = _files(cwd, rules["outputs"], before)
        if flaw is None or flaw[0] == "output_stale" or time.monotonic() >= deadline:
            break
        time.sleep(_LOOK_AGAIN)
    if flaw is None:
        return {"reason": "", "detail": "", "signature": "", "outputs": files}
    reason, detail = flaw
    return {"reason": reason, "detail": detail, "signature": "", "partial": files}


def _files(
    cwd: Path, declared: Iterable[Record], before: outputs.Marks
) -> tuple[Optional[tuple[str, str]], list[Record]]:
    """What is wrong with the outputs, and those that this attempt made."""
    flaw: Optional[tuple[str, str]] = None
    made: dict[str, int] = {}
    for one in declared:
        base, pattern = base_and_pattern(cwd, one["path"])
        there = {str(base / path): marks for path, marks in outputs.snapshot(base, [pattern]).items()}
        fresh = {path: marks[0] for path, marks in there.items() if marks != before.get(path)}
        made.update(fresh)
        flaw = flaw or _flaw(one, there, fresh)
    return flaw, [{"path": path, "size": size} for path, size in sorted(made.items())[:1000]]


def _flaw(one: Record, there: outputs.Marks, fresh: dict[str, int]) -> Optional[tuple[str, str]]:
    least, size = int(one.get("min", 1)), int(one.get("min_bytes", 0))
    if len(there) < least:
        return "output_missing", f"{one['path']!r} matches {len(there)} of {least}"
    if len(fresh) < min(least, len(there)) or (there and not fresh):
        return "output_stale", f"{one['path']!r} is as it was before the start"
    small = [path for path, found in fresh.items() if found < size]
    if small:
        return "output_missing", f"{small[0]} has less than {size} bytes"
    if one.get("json"):
        for path in fresh:
            try:
                json.loads(Path(path).read_bytes())
            except (OSError, ValueError) as error:
                return "output_missing", f"{path} isn't JSON: {error}"
    return None


def present(cwd: Path, declared: Iterable[Record]) -> bool:
    """Whether outputs of an earlier time are all there, for a job that says to skip then."""
    rules = list(declared)
    return bool(rules) and _files(cwd, rules, {})[0] is None
