"""What all jobs of a manifest share: the host, its cards, the environment, defaults."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from widelane.models.queue import Word
from widelane.plan.drafts import Fields
from widelane.plan.reading import Reading
from widelane.queue.commands import Command, Program, program
from widelane.queue.conditions import as_json, conditions, patterns_of, read_commands, rules_of
from widelane.queue.text import Pattern, check_slots

DEFAULTS: dict[str, Any] = {
    "gpus": 1,
    "grace": 10,
    "retry": {"lost": 1, "spawn_error": 1},
    "oom_retry": {"delay": 120, "max_attempts": None},
}
"""Of jobs, in the words of the runner's spec, where it leaves the choice."""
CONDA_CODE = 213
"""Exit code of a job whose conda environment could not be activated."""


@dataclass(frozen=True, slots=True)
class Header:
    """`spec`: keys of the runner's spec for the run. What hangs on single jobs' values is left to them."""

    project: str
    lane: str
    cwd: str
    """As written; "" is the manifest's folder, or the home folder of another host."""
    conda: str
    conda_hook: str
    default_cmd: Program | None
    rules: dict[str, Any]
    preconditions: tuple[Fields, ...]
    """Those with placeholders."""
    spec: dict[str, Any]
    salt: str


def read_header(fields: Fields, at: Reading) -> Header:
    """The keys at the top of a manifest."""
    rules = rules_of({key: value for key, value in fields.items() if key != "gpus"}, DEFAULTS)
    env: tuple[tuple[str, Pattern], ...] = fields.get("env", ())
    for _, value in env:
        check_slots(value, (), at)
    common, own = split_conditions(fields, at, ())
    spec: dict[str, Any] = {
        "gpus": list(fields["gpus"]) if "gpus" in fields else None,
        "max_parallel": fields.get("max_parallel"),
        "cpu_slots": fields.get("cpu_slots"),
        "gpu_free_mib": fields.get("gpu_free_threshold_mib", 500),
        "headroom_mib": fields.get("gpu_headroom_mib", 512),
        "env": {name: as_json(value.fill({})) for name, value in env},
        "preconditions": common,
        "wave": wave_of(fields.get("wave")),
        "defaults": rules,
    }
    if "breaker" in fields:
        spec["breaker"] = breaker_of(fields["breaker"])
    conda = fields.get("conda", "")
    conda = "" if conda.lower() in ("none", "false", "off") else conda
    cwd = _folder(fields, at)
    shared = [cwd, conda, fields.get("conda_hook", ""), spec["env"]]
    return Header(
        project=fields.get("project", ""),
        lane=_lane(fields),
        cwd=cwd,
        conda=conda,
        conda_hook=fields.get("conda_hook", ""),
        default_cmd=_default(fields.get("default_cmd"), fields, at),
        rules=rules,
        preconditions=own,
        spec=spec,
        salt=json.dumps(shared, sort_keys=True),
    )


def wave_of(wave: Fields | None) -> dict[str, Any] | None:
    """A wave in the spec's words."""
    return None if wave is None else {"size": wave["size"], "barrier": wave.get("barrier", True)}


def breaker_of(breaker: Fields) -> dict[str, Any] | None:
    """A breaker in the spec's words; None for one that never opens."""
    whole = {"failures": 3, "seconds": 60, **breaker}
    return whole if whole["failures"] else None


def split_conditions(
    fields: Fields, at: Reading, path: tuple[str | int, ...]
) -> tuple[list[dict[str, Any]], tuple[Fields, ...]]:
    """Preconditions that are the same for every job, in the spec's words; and those with placeholders."""
    read = read_commands(fields.get("preconditions", ()), at, (*path, "preconditions"))
    whole = [one for one in read if "type" in one]
    own = tuple(one for one in whole if any(any(True for _ in text.slots) for text in patterns_of((one,))))
    return conditions([one for one in whole if one not in own], {}), own


def _default(command: Command | None, fields: Fields, at: Reading) -> Program | None:
    return None if command is None else program(command, bool(fields.get("shell")), at, ("default_cmd",))


def _folder(fields: Fields, at: Reading) -> str:
    if "cwd" not in fields:
        return ""
    check_slots(fields["cwd"], (), at, late=False)
    word: Word = fields["cwd"].fill({})
    return str(word)


def _lane(fields: Fields) -> str:
    host: str = fields.get("host", "")
    if not host and "ssh" in fields:
        return f"ssh:{fields['ssh']}"
    return host or "local"
