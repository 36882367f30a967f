"""What a supervisor is asked to run for a job: places filled in, steps of escalation taken."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..attempt import Record
from .spec import Json
from .words import fill, is_a


def escalated(job: Json, step: int) -> Json:
    """A job after the first `step` steps of its `oom_retry.escalate`."""
    for one in job["oom_retry"].get("escalate", [])[:step]:
        env = {**job["env"], **one.get("env", {})}
        changes = {key: one[key] for key in ("argv", "gpu_select", "gpu_mem_mib", "exclusive", "gpus") if one.get(key)}
        job = {**job, **changes, "env": env}
    return job


def folder(job: Json, run: Json, values: Mapping[str, str]) -> Path:
    """Where a job runs."""
    return Path(run["cwd"], fill(job["cwd"], values))


def declared(job: Json, values: Mapping[str, str]) -> list[Record]:
    """Its outputs, each as an object."""
    whole: list[Record] = [one if is_a(one, dict) else {"path": one} for one in job["outputs"]]
    return [{**one, "path": fill(one["path"], values)} for one in whole]


def values_of(run: Json, root: Path, attempt: int, cards: tuple[str, ...]) -> dict[str, str]:
    """What the late names of words mean for one attempt."""
    handles = ",".join(cards)
    return {
        "gpu": handles,
        "GPU": handles,
        "gpus": str(len(cards)),
        "job.attempt": str(attempt),
        "run.dir": str(root / "runs" / run["run_id"]),
        "run.id": run["run_id"],
    }


def request(job: Json, run: Json, values: Mapping[str, str]) -> Record:
    """The content of request.json; nonce and mark are added by the engine."""
    env: dict[str, Any] = {**run["env"], **job["env"]}
    return {
        "argv": [fill(word, values) for word in job["argv"]],
        "cwd": os.fspath(folder(job, run, values)),
        "env": {
            **{name: fill(word, values) for name, word in env.items()},
            "WIDELANE_RUN": run["run_id"],
            "WIDELANE_JOB": job["id"],
            "WIDELANE_TRY": values["job.attempt"],
            "CUDA_VISIBLE_DEVICES": values["gpu"],
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        },
        "grace": job["grace"],
        "timeout": job["timeout"],
        "judge": {
            "outputs": declared(job, values),
            "output_grace": job["output_grace"],
            "success_codes": job["success_codes"],
            "env_codes": job["env_codes"],
            "timeout": job["timeout"],
        },
    }
