"""What is asked on a cluster's login host: submit, look, list, cancel, remove, and what the partition holds."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from widelane.lanes.slurm.far import commands
from widelane.lanes.slurm.far.commands import RefusedError
from widelane.lanes.slurm.far.folder import Folder, HeldError
from widelane.transport.remote.depot import news
from widelane.transport.remote.frame import Call
from widelane.transport.remote.places import place


def check(call: Call) -> dict[str, Any]:
    """What a create needs here. Asked: root."""
    commands.find_commands()
    root = place(call.request["root"])
    trouble = ""
    try:
        root.mkdir(parents=True, exist_ok=True)
        if not os.access(root, os.W_OK):
            trouble = f"{root} can't be written to"
    except OSError as error:
        trouble = f"{root} can't be made: {error.strerror}"
    return {"missing": commands.missing_commands(), "trouble": trouble}


def room(call: Call) -> dict[str, Any]:
    """The nodes of a partition. Asked: partition ("" for all)."""
    commands.find_commands()
    try:
        return {"refused": None, "nodes": commands.nodes(call.request["partition"])}
    except RefusedError as error:
        return {"refused": error.answer, "nodes": []}


def claim(call: Call) -> dict[str, Any]:
    """Make the folder of a name, with a store in it, unless another attempt has it. Asked: root, name, attempt."""
    folder = _folder(call)
    folder.path.mkdir(parents=True, exist_ok=True)

    def act() -> None:
        if folder.read("attempt") in ("", call.request["attempt"]):
            folder.write("attempt", call.request["attempt"])
            folder.store.mkdir(exist_ok=True)

    return _answer(folder, act)


def submit(call: Call) -> dict[str, Any]:
    """One job of this name and attempt, whoever asks and however often.

    Asked: root, name, attempt, intent, options (of sbatch), script, keeper; the runner comes as a file.
    """
    asked, folder = call.request, _folder(call)
    folder.path.mkdir(parents=True, exist_ok=True)
    runner = folder.path / f".runner-{os.getpid()}"

    def act() -> None:
        taken = folder.read("attempt") not in ("", asked["attempt"])
        if not folder.deleting.exists() and not taken and not folder.read("job"):
            runner.replace(folder.path / "runner.pyz")
            _send(folder, asked)

    try:
        with runner.open("wb") as target:
            call.receive(target)
        return _answer(folder, act)
    finally:
        with contextlib.suppress(FileNotFoundError):
            runner.unlink()


def look(call: Call) -> dict[str, Any]:
    """What there is of a name. Asked: root, name; since (as `news` said) where the store there is asked for too."""
    folder, since = _folder(call), call.request.get("since")
    answer = _answer(folder, None)
    # The queue is asked first: a job that is gone has written everything it ever will.
    found = news(folder.store, since) if since is not None and folder.store.is_dir() else None
    return {**answer, "news": found}


def listing(call: Call) -> dict[str, Any]:
    """Everything of ours in the queue and under `root`, without details. Asked: root."""
    commands.find_commands()
    root = place(call.request["root"])
    paths = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    try:
        found = commands.jobs("-t", "all")
    except RefusedError as error:
        return {"refused": error.answer, "jobs": [], "folders": []}
    sights = [Folder(path).sight() for path in paths if not path.name.startswith(".")]
    return {"refused": None, "jobs": found, "folders": [sight for sight in sights if sight is not None]}


def cancel(call: Call) -> dict[str, Any]:
    """Cancel the jobs of a name; they may take a while to go. Asked: root, name."""
    folder = _folder(call)
    if folder.there:
        folder.deleting.touch()

    def act() -> None:
        live = commands.jobs("-n", folder.path.name)
        if live and folder.there and not folder.read("cancelled"):
            folder.write("cancelled", str(time.time()))
        for job in live:
            commands.run("scancel", job["id"])

    return _answer(folder, act)


def remove(call: Call) -> dict[str, Any]:
    """Take the folder away if nothing of its job can be at work.

    Asked: root, name, silence (seconds after which the keeper on a lost node counts as dead).
    """
    folder = _folder(call)

    def act() -> None:
        if folder.there and not commands.jobs("-n", folder.path.name) and _is_over(folder, call.request["silence"]):
            folder.remove()

    return _answer(folder, act)


def _answer(folder: Folder, act: Callable[[], None] | None) -> dict[str, Any]:
    """Act under the lock, then look; what SLURM refused, and whether somebody else is at it, stands beside it."""
    commands.find_commands()
    refused: dict[str, Any] | None = None
    held = False
    try:
        if act is not None:
            with folder.locked():
                act()
    except HeldError:
        held = True
    except RefusedError as error:
        refused = error.answer
    told = {"refused": refused, "held": held, "jobs": None, "folder": None, "depot": str(folder.store)}
    try:
        found = commands.jobs("-t", "all", "-n", folder.path.name)
        sight = folder.sight()
        kept = sight["job"] if sight is not None else ""
        return {**told, "jobs": commands.with_details(found, folder.path.name, kept), "folder": sight}
    except RefusedError as error:
        return {**told, "refused": refused or error.answer}


def _send(folder: Folder, asked: dict[str, Any]) -> None:
    """Adopt the job of this attempt, or submit it. A refused submit leaves a record that never had a node."""
    word = f"widelane-attempt={asked['attempt']}"
    known = [
        job["id"]
        for job in commands.jobs("-t", "all", "-n", asked["name"])
        if word in job["comment"].split(",") and (job["nodes"] or job["state"] == "PENDING")
    ]
    if known:
        folder.write("job", known[0])
        return
    folder.write("attempt", asked["attempt"])
    folder.write("keeper.py", asked["keeper"])
    store = asked["intent"]["store"] or folder.store.as_uri()
    folder.write("intent", json.dumps({**asked["intent"], "store": store}))
    log = str(folder.path / "log").replace("%", "%%")
    own = (f"--job-name={asked['name']}", f"--chdir={folder.path}", f"--output={log}")
    said = commands.run("sbatch", "--parsable", *own, *asked["options"], text=asked["script"])
    folder.write("job", said.strip().splitlines()[-1].partition(";")[0])


def _is_over(folder: Folder, silence: float) -> bool:
    """Whether nothing of a job that isn't in the queue can be at work: a node that was lost may work on."""
    claimed = folder.read("claim")
    if not claimed or folder.read("ended"):
        return True
    found = commands.jobs("-t", "all", "-n", folder.path.name)
    states = [job["state"] for job in found if job["id"] == claimed]
    if states and states[0] != "NODE_FAIL":
        return True
    return folder.silent_for() >= silence


def _folder(call: Call) -> Folder:
    name = call.request["name"]
    if not name or name.startswith(".") or name != Path(name).name:
        raise ValueError(f"not the name of a machine: {name!r}")
    return Folder(place(call.request["root"]) / name)
