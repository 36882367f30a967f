"""What others may ask of a queue: hand in runs, give orders, wait. The scheduler is started where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ..attempt import locked
from . import base
from .enlist import digest_of, enlist, transaction
from .serve import holder, poke
from .spec import Json, QueueError, parse

_PATIENCE = 60.0
_LOOK_AGAIN = 0.005


def submit(root: Path, given: Json, runner: Path) -> dict[str, Any]:
    """Hand a run in; again with the same run id and content changes nothing. Raises `QueueError`, OSError."""
    spec = parse(given)
    (root / "runs" / spec["run_id"]).mkdir(parents=True, exist_ok=True)
    db = base.connect(root)
    try:
        found = db.execute("select state, digest from run where name = ?", (spec["run_id"],)).fetchone()
        if found is not None and found[0] != "loading":
            return _submit_again(root, spec, found[1], runner)
        enlist(db, spec)
    finally:
        db.close()
    command(root, {"verb": "take", "run_id": spec["run_id"]}, runner)
    diff: dict[str, Any] = {"added": [job["id"] for job in spec["jobs"]], "removed": [], "changed": [], "same": 0}
    return {"run_id": spec["run_id"], "created": True, "diff": diff, "applied": True}


def _submit_again(root: Path, spec: Json, known: str, runner: Path) -> dict[str, Any]:
    if digest_of(spec) == known:
        command(root, {"verb": "take", "run_id": spec["run_id"]}, runner)
        diff: dict[str, Any] = {"added": [], "removed": [], "changed": [], "same": len(spec["jobs"])}
        return {"run_id": spec["run_id"], "created": False, "diff": diff, "applied": True}
    answer = command(root, {"verb": "edit", "run_id": spec["run_id"], "spec": spec}, runner)
    return {"run_id": spec["run_id"], "created": False, "diff": answer["diff"], "applied": answer["applied"]}


def command(root: Path, order: Json, runner: Path, patience: float = _PATIENCE) -> dict[str, Any]:
    """Give an order and wait for the answer. It is on disk before a scheduler hears of it. Raises `QueueError`."""
    if not base.path(root).exists():
        raise QueueError("no_run", f"no run {order.get('run_id')!r}")
    db = base.connect(root)
    try:
        with transaction(db):
            cursor = db.execute("insert into command (at, body) values (?, ?)", (time.time(), json.dumps(order)))
        number = cursor.lastrowid
        deadline = time.monotonic() + patience
        ensure(root, runner)
        poke(root)
        while True:
            answer = db.execute("select answer from command where id = ?", (number,)).fetchone()[0]
            if answer is not None:
                return _answer(json.loads(answer))
            if time.monotonic() > deadline:
                raise QueueError("no_scheduler", f"the scheduler of {root} gives no answer; it is {holder(root)}")
            time.sleep(_LOOK_AGAIN)
            if not is_served(root):
                ensure(root, runner)
    finally:
        db.close()


def _answer(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise QueueError(answer["error"], answer["message"])
    return answer


def is_served(root: Path) -> bool:
    """Whether a scheduler holds the root folder."""
    try:
        with locked(root / "lock") as held:
            return held is None
    except OSError:
        return False


def ensure(root: Path, runner: Path) -> bool:
    """Start a scheduler, detached, where none is; True when it was started. Raises OSError."""
    if is_served(root):
        return False
    root.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-S", "-E", "-X", "utf8", os.fspath(runner), "queue", "serve", "--root", os.fspath(root)]
    with (root / "scheduler.log").open("ab") as log:
        subprocess.run(
            [*command, "--detach"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            check=False,
        )
    return True
