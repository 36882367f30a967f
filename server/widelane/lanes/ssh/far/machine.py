"""The lane's calls on the host. Each may be repeated, and each leaves something that any other can go on from."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from widelane.lanes.ssh.far.cards import Hand, taken
from widelane.lanes.ssh.far.folder import MARK, Folder, folder_of, names, yard
from widelane.runner.host.attempt import read_record, write_record
from widelane.transport.remote import depot
from widelane.transport.remote.frame import Call

_START_SECONDS = 15.0
_LOOK_SECONDS = 0.01
_KIT = (
    "widelane.transport.remote.places",
    "widelane.runner.host.processes",
    "widelane.runner.host.attempt",
    "widelane.lanes.ssh.far.folder",
    "widelane.lanes.ssh.far.keeper",
)
"""What the keeper is made of."""
_KEEP = "import sys\n\nfrom widelane.lanes.ssh.far.keeper import main\n\nsys.exit(main())\n"


def check(call: Call) -> dict[str, Any]:
    """Whether machines can be made here: a folder that can be written, /proc, GPUs or why there are none."""
    base = yard(call.request["root"])
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not os.access(base, os.W_OK):
        raise PermissionError(13, "can't be written", str(base))
    return {"proc": Path("/proc/self/stat").exists(), "root": str(base)}


def claim(call: Call) -> dict[str, Any]:
    """Write the intent, unless another attempt has the name or too few GPUs are free; nothing is started."""
    folder = folder_of(call.request["root"], call.request["name"])
    launch: dict[str, Any] = call.request["launch"]
    folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    with folder.claimed() as lock:
        if lock is not None and not folder.deleting.exists() and folder.intent() is None:
            with taken(launch["width"], folder, os.environ) as hand:
                refused = _refusal(launch["width"], hand)
            if refused is not None:
                folder.remove()
                return {"refused": refused}
            folder.store.mkdir(exist_ok=True)
            write_record(folder.launch, {**launch, "created": time.time()})
    missing = depot.missing_of(folder.store, call.request["keys"])
    return {"machine": sight(folder), "depot": str(folder.store), "missing": missing}


def start(call: Call) -> dict[str, Any]:
    """Start what was claimed and has its store; once, whoever asks and however often."""
    folder = folder_of(call.request["root"], call.request["name"])
    if not folder.path.is_dir():
        return {"machine": None}
    with folder.claimed() as lock:
        intent = folder.intent()
        if lock is not None and intent is not None and _is_startable(folder, intent, call.request["attempt_id"]):
            with taken(intent["width"], folder, os.environ) as hand:
                refused = _refusal(intent["width"], hand)
                if refused is not None:
                    folder.remove()
                    return {"refused": refused}
                _start(folder, intent, hand, lock, call.sources)
    return {"machine": sight(folder)}


def look(call: Call) -> dict[str, Any]:
    """How a machine stands, and what became new in its store."""
    folder = folder_of(call.request["root"], call.request["name"])
    try:
        # The machine is looked at before its store: one that has ended has written everything it ever will.
        machine = sight(folder)
        news = depot.news(folder.store, call.request["since"]) if machine is not None else None
    except FileNotFoundError:
        if not folder.path.exists():
            return {"machine": None, "news": None}
        raise
    return {"machine": machine, "news": news, "depot": str(folder.store)}


def every(call: Call) -> dict[str, Any]:
    """How every machine of this host stands."""
    root = call.request["root"]
    return {"machines": [found for name in names(root) if (found := sight(folder_of(root, name))) is not None]}


def end(call: Call) -> dict[str, Any]:
    """End every process of a machine, and forbid others; `left` are those that can't be ended."""
    folder = folder_of(call.request["root"], call.request["name"])
    if not folder.path.exists():
        return {"absent": True, "left": []}
    with contextlib.suppress(FileNotFoundError):
        folder.deleting.touch()
    return {"absent": False, "left": folder.end(call.request["grace_seconds"])}


def remove(call: Call) -> dict[str, Any]:
    """Take away the folder of a machine that was ended; `removed` is False when something of it lives again."""
    folder = folder_of(call.request["root"], call.request["name"])
    try:
        with folder.claimed() as lock:
            if lock is not None and not folder.members():
                folder.remove()
    except FileNotFoundError:
        pass
    return {"removed": not folder.path.exists()}


def sight(folder: Folder) -> dict[str, Any] | None:
    """A machine as it is now; None when there is no intent."""
    intent = folder.intent()
    if intent is None:
        return None
    return {
        "name": folder.path.name,
        "state": _state(folder),
        "intent": intent,
        "progress": read_record(folder.host / "progress.json"),
        "ended": read_record(folder.ended),
    }


def _state(folder: Folder) -> str:
    alive = folder.lives()
    if folder.deleting.exists():
        return "stopping"
    if not folder.process.exists():
        return "starting"
    return "running" if alive else "stopped"


def _is_startable(folder: Folder, intent: dict[str, Any], attempt_id: str) -> bool:
    """Whether this very attempt was intended and never begun."""
    return intent["attempt_id"] == attempt_id and not folder.process.exists() and not folder.deleting.exists()


def _refusal(wanted: int, hand: Hand) -> dict[str, Any] | None:
    """Why so many GPUs can't be had."""
    if len(hand.handles) == wanted:
        return None
    return {
        "total": hand.total,
        "free": hand.total - len(hand.busy),
        "holders": sorted(set(hand.busy.values())),
        "trouble": hand.trouble,
    }


def _start(folder: Folder, intent: dict[str, Any], hand: Hand, lock: int, sources: dict[str, str]) -> None:
    """Start the keeper with the locks in its hands and wait until it has recorded itself."""
    runner = folder.store / "runners" / f"{intent['runner_sha256']}.pyz"
    folder.runner.write_bytes(runner.read_bytes())
    command = [sys.executable, str(folder.runner), "host", "--store", folder.store.as_uri()]
    command += ["--spec", intent["spec_key"], "--root", str(folder.host)]
    write_record(folder.launch, {**intent, "command": command, "gpus": list(hand.handles)})
    _write_kit(folder.kit, sources)
    env = {**os.environ, MARK: str(folder.path)}
    if intent["width"]:
        env.update(CUDA_VISIBLE_DEVICES=",".join(hand.handles), CUDA_DEVICE_ORDER="PCI_BUS_ID")
    with folder.log.open("ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, str(folder.kit / "keep.py"), str(folder.path)],
            cwd=folder.path,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock, *hand.locks),
        )
    deadline = time.monotonic() + _START_SECONDS
    while not folder.process.exists() and keeper.poll() is None and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    if keeper.poll() is not None and not folder.process.exists():
        raise OSError(5, f"the keeper ended with {keeper.returncode}: {_tail(folder.log)}")


def _write_kit(kit: Path, sources: dict[str, str]) -> None:
    for name in _KIT:
        path = kit.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sources[name], encoding="utf-8")
        for above in list(path.relative_to(kit).parents)[:-1]:
            (kit / above / "__init__.py").touch()
    (kit / "keep.py").write_text(_KEEP, encoding="utf-8")


def _tail(log: Path) -> str:
    return log.read_bytes()[-400:].decode(errors="replace").strip()
