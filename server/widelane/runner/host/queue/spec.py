"""What a run is to do, as it is handed in: checked whole, then kept as it is. All problems are told at once."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Optional

from . import words
from .words import is_a

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_JOBS = 100_000
_MAX_TOLD = 50

Json = dict[str, Any]

RUN_DEFAULTS: Json = {
    "project": "",
    "env": {},
    "gpus": None,
    "max_parallel": None,
    "cpu_slots": None,
    "gpu_free_mib": 500,
    "settle": {"samples": 2, "seconds": 1.0},
    "headroom_mib": 512,
    "gate_timeout": 86400,
    "preconditions": [],
    "wave": None,
    "breaker": {"failures": 3, "seconds": 60},
}
JOB_DEFAULTS: Json = {
    "cwd": "",
    "env": {},
    "needs": [],
    "on_need_failed": "hold",
    "gpus": 1,
    "gpu_mem_mib": None,
    "exclusive": False,
    "gpu_select": {},
    "outputs": [],
    "if_exists": "run",
    "success_codes": [0],
    "env_codes": [],
    "timeout": None,
    "grace": 10,
    "output_grace": 5,
    "preconditions": [],
    "retry": {},
    "oom_retry": {},
    "on_fail": None,
}
_CHOICES = {
    "on_need_failed": ("hold", "skip", "run"),
    "if_exists": ("run", "skip"),
    "on_fail": (None, "failed", "stuck"),
}
_COUNTS = ("max_parallel", "cpu_slots", "gpu_free_mib", "headroom_mib", "gate_timeout")
PRECONDITIONS: dict[str, tuple[str, ...]] = {
    "file": ("path",),
    "glob": ("pattern",),
    "command": ("argv",),
    "env_witness": ("provider", "hash"),
    "disk_free": ("path", "mib"),
    "gpu_total": ("min",),
    "not_before": ("at",),
}
"""Kinds, and what each must have."""


class QueueError(ValueError):
    """Something that was asked for can't be done; `code` is for machines."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Check:
    """Collects what is wrong."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def that(self, fine: bool, text: str) -> bool:
        if not fine:
            self.problems.append(text)
        return fine

    def count(self, value: Any, at: str, least: float = 0) -> None:
        number = is_a(value, (int, float)) and not is_a(value, bool)
        self.that(value is None or (number and value >= least), f"{at}: a number from {least}, or null")

    def words(self, value: Any, at: str) -> None:
        if self.that(is_a(value, list) and value != [], f"{at}: a list that isn't empty"):
            for place, word in enumerate(value):
                flaw = words.flaw(word)
                self.that(not flaw, f"{at}[{place}] {flaw}")

    def env(self, value: Any, at: str) -> None:
        if self.that(is_a(value, dict), f"{at}: an object"):
            for name, word in value.items():
                flaw = words.flaw(word) or ("isn't a name" if "=" in name or "\0" in name or not name else "")
                self.that(not flaw, f"{at}.{name} {flaw}")

    def preconditions(self, value: Any, at: str) -> None:
        if not self.that(is_a(value, list), f"{at}: a list"):
            return
        for place, item in enumerate(value):
            kind = item.get("kind") if is_a(item, dict) else None
            if self.that(kind in PRECONDITIONS, f"{at}[{place}].kind: one of {', '.join(PRECONDITIONS)}"):
                missing = [key for key in PRECONDITIONS[str(kind)] if key not in item]
                self.that(not missing, f"{at}[{place}]: lacks {', '.join(missing)}")
                unmet = item.get("on_unmet", "hold")
                self.that(unmet in ("hold", "fail", "skip"), f"{at}[{place}].on_unmet: hold, fail or skip")

    def wave(self, value: Any, at: str) -> None:
        size = value.get("size") if is_a(value, dict) else 0
        self.that(value is None or (is_a(size, int) and size > 0), f"{at}: null, or an object with a size from 1")


def parse(given: Any) -> Json:
    """The spec with defaults in it; `jobs` stay as given. Raises `QueueError`."""
    check = _Check()
    if not is_a(given, dict) or given.get("queue") != 1:
        raise QueueError("bad_spec", "spec: an object with queue: 1")
    spec: Json = {**RUN_DEFAULTS, **given}
    _run(spec, check)
    phases = _phases(spec, check)
    jobs = spec.get("jobs")
    if check.that(is_a(jobs, list) and 0 < len(jobs or ()) <= MAX_JOBS, f"jobs: a list of 1 to {MAX_JOBS}"):
        defaults = spec.setdefault("defaults", {})
        if check.that(is_a(defaults, dict), "defaults: an object"):
            _job({"id": "-", "phase": "", "argv": ["-"], **defaults}, "defaults", check)
        _jobs(spec, phases, check)
    if check.problems:
        told = check.problems[:_MAX_TOLD]
        more = len(check.problems) - len(told)
        raise QueueError("bad_spec", "\n".join([*told, f"and {more} more"] if more else told))
    return spec


def _run(spec: Json, check: _Check) -> None:
    run_id: Any = spec.get("run_id")
    check.that(is_a(run_id, str) and RUN_ID.fullmatch(run_id) is not None, f"run_id: {RUN_ID.pattern}")
    cwd: Any = spec.get("cwd")
    check.that(is_a(cwd, str) and cwd.startswith("/"), "cwd: an absolute path")
    check.env(spec["env"], "env")
    check.preconditions(spec["preconditions"], "preconditions")
    check.wave(spec["wave"], "wave")
    for key in _COUNTS:
        check.count(spec[key], key)
    cards = spec["gpus"]
    named = is_a(cards, list) and all(is_a(one, (int, str)) for one in cards)
    check.that(cards is None or named, "gpus: a list of indices or UUIDs, or null")


def _phases(spec: Json, check: _Check) -> set[str]:
    phases = spec.get("phases")
    names: set[str] = set()
    if check.that(is_a(phases, list) and phases != [], "phases: a list that isn't empty"):
        for place, phase in enumerate(phases or ()):
            at = f"phases[{place}]"
            if not check.that(is_a(phase, dict) and is_a(phase.get("name"), str), f"{at}: lacks a name"):
                continue
            check.that(phase["name"] not in names, f"{at}: {phase['name']!r} is there twice")
            names.add(phase["name"])
            check.count(phase.get("max_parallel"), f"{at}.max_parallel", 1)
            check.wave(phase.get("wave"), f"{at}.wave")
            check.preconditions(phase.get("preconditions", []), f"{at}.preconditions")
    return names


def _jobs(spec: Json, phases: set[str], check: _Check) -> None:
    ids: set[str] = set()
    for place, job in enumerate(spec["jobs"]):
        at = f"jobs[{place}]"
        if not check.that(is_a(job, dict) and is_a(job.get("id"), str) and job["id"], f"{at}: lacks an id"):
            continue
        check.that(job["id"] not in ids, f"{at}: the id {job['id']!r} is there twice")
        ids.add(job["id"])
        check.that(job.get("phase") in phases, f"{at}.phase: {job.get('phase')!r} isn't among the phases")
        _job(job, at, check)
    for place, job in enumerate(spec["jobs"]):
        for need in job.get("needs", ()) if is_a(job, dict) else ():
            _need(need, f"jobs[{place}].needs", (ids, phases), check)
    if not check.problems:
        cycle = _cycle(spec)
        check.that(not cycle, f"jobs: they need each other: {' -> '.join(cycle)}")


def _job(job: Json, at: str, check: _Check) -> None:
    check.words(job.get("argv"), f"{at}.argv")
    if "env" in job:
        check.env(job["env"], f"{at}.env")
    if "preconditions" in job:
        check.preconditions(job["preconditions"], f"{at}.preconditions")
    for key, choices in _CHOICES.items():
        check.that(job.get(key, choices[0]) in choices, f"{at}.{key}: one of {choices}")
    for key in ("gpus", "gpu_mem_mib", "timeout", "grace", "output_grace"):
        check.count(job.get(key), f"{at}.{key}")
    check.that(is_a(job.get("gpus", 1), int), f"{at}.gpus: a whole number")
    for key in ("retry", "oom_retry", "gpu_select"):
        check.that(is_a(job.get(key, {}), dict), f"{at}.{key}: an object")
    for place, output in enumerate(job.get("outputs", ())):
        flaw = words.flaw(output.get("path") if is_a(output, dict) else output)
        check.that(not flaw, f"{at}.outputs[{place}] {flaw}")


def _need(need: Any, at: str, known: tuple[set[str], set[str]], check: _Check) -> None:
    one = is_a(need, dict) and ("job" in need) != ("phase" in need)
    if check.that(one, f"{at}: each has a job or a phase"):
        there = need["job"] in known[0] if "job" in need else need["phase"] in known[1]
        check.that(there, f"{at}: {need.get('job', need.get('phase'))!r} isn't there")
        check.that(
            need.get("when", "success") in ("success", "finished", "failure"), f"{at}.when: {need.get('when')!r}"
        )


def _cycle(spec: Json) -> list[str]:
    """Names that need each other, the first one again at the end; [] when there is no cycle."""
    below: dict[tuple[str, str], list[tuple[str, str]]] = {("phase", phase["name"]): [] for phase in spec["phases"]}
    for job in spec["jobs"]:
        name = ("job", job["id"])
        below[("phase", job["phase"])].append(name)
        needs = job.get("needs", spec["defaults"].get("needs", ()))
        below[name] = [("job", need["job"]) if "job" in need else ("phase", need["phase"]) for need in needs]
    done: set[tuple[str, str]] = set()
    for start in below:
        path: list[tuple[str, str]] = []
        on_path: set[tuple[str, str]] = set()
        stack = [(start, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                done.add(path.pop())
                on_path.discard(node)
            elif node in on_path:
                return [name for _, name in [*path[path.index(node) :], node]]
            elif node not in done:
                path.append(node)
                on_path.add(node)
                stack.append((node, True))
                stack.extend((other, False) for other in below[node])
    return []


def full(spec: Json, job: Json) -> Json:
    """A job with the run's and our defaults."""
    return {**JOB_DEFAULTS, **spec.get("defaults", {}), **job}


def digest(job: Json, defaults: Json) -> str:
    """What tells an edited job from the same one."""
    given: Optional[str] = job.get("digest")
    return given or hashlib.sha256(json.dumps([defaults, job], sort_keys=True).encode()).hexdigest()
