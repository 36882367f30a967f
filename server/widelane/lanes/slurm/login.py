"""What is asked on a cluster's login host: submit, look, list, cancel, and what the partition holds.

Sent over the line with every call; standard library only, Python 3.9. Each job of ours has a folder, `root/name`,
that login host and nodes share (`keeper.py` says what is in it). SLURM knows the job, the folder knows whose it is
and how its work gets on; both are asked, and neither is believed alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from widelane.transport.remote.frame import Call

COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")
MARK = "widelane=1"
_COLUMNS = ("id", "name", "state", "reason", "start", "submitted", "nodes", "comment")
_ROW = "%i|%j|%T|%r|%S|%V|%N|%k"
_DETAILS = {"Reason": "reason", "ExitCode": "exit_code", "DerivedExitCode": "derived_exit_code", "Restarts": "restarts"}
_COMMAND_SECONDS = 40.0
_LOCK_SECONDS = 20.0
_TAIL_BYTES = 1500
_NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)


class RefusedError(Exception):
    """A client command that failed; `answer` has its name, exit code (None: it took too long) and words."""

    def __init__(self, command: str, code: int | None, text: str) -> None:
        super().__init__(command)
        self.answer = {"command": command, "code": code, "text": text}


class HeldError(Exception):
    """Another call works on this folder."""


def submit(call: Call) -> dict[str, Any]:
    """One job of this name and attempt, whoever asks and however often.

    Asked: root, name, attempt, intent, options (of sbatch), script, keeper; the runner comes as a file.
    """
    asked = call.request
    folder = _root(asked) / asked["name"]
    folder.mkdir(parents=True, exist_ok=True)
    runner = folder / f".runner-{os.getpid()}"
    with runner.open("wb") as target:
        call.receive(target)

    def act() -> None:
        with _locked(folder):
            if (folder / "deleting").exists() or _attempt(folder) not in ("", asked["attempt"]):
                return
            if not _text(folder / "job"):
                runner.replace(folder / "runner.pyz")
                _send(folder, asked)

    try:
        return _answer(folder, act)
    finally:
        with contextlib.suppress(FileNotFoundError):
            runner.unlink()


def look(call: Call) -> dict[str, Any]:
    """What there is of a name. Asked: root, name."""
    return _answer(_root(call.request) / call.request["name"], lambda: None)


def listing(call: Call) -> dict[str, Any]:
    """Everything of ours in the queue and under `root`, without details. Asked: root."""
    _find_commands()
    root = _root(call.request)
    names = sorted(entry.name for entry in root.iterdir() if entry.is_dir()) if root.is_dir() else []
    try:
        jobs = _jobs("-t", "all")
    except RefusedError as error:
        return {"refused": error.answer, "jobs": [], "folders": []}
    found = [_sight(root / name) for name in names if not name.startswith(".")]
    return {"refused": None, "jobs": jobs, "folders": [folder for folder in found if folder is not None]}


def delete(call: Call) -> dict[str, Any]:
    """Cancel the jobs of a name; once nothing of them can be at work, take the folder away.

    Asked: root, name, silence (seconds after which a lost node counts as dead).
    """
    asked = call.request
    folder = _root(asked) / asked["name"]

    def act() -> None:
        if folder.is_dir():
            (folder / "deleting").touch()
        with _locked(folder):
            live = [job["id"] for job in _jobs("-n", asked["name"])]
            if live and folder.is_dir() and not (folder / "cancelled").exists():
                _write(folder / "cancelled", str(time.time()))
            for job in live:
                _run("scancel", job)
            if not _jobs("-n", asked["name"]) and folder.is_dir() and _is_over(folder, asked["silence"]):
                gone = folder.with_name(f".gone-{folder.name}-{os.getpid()}")
                folder.rename(gone)
                _remove_later(gone)

    return _answer(folder, act)


def room(call: Call) -> dict[str, Any]:
    """The nodes of a partition, as sinfo shows them. Asked: partition ("" for all)."""
    _find_commands()
    options = ["-p", call.request["partition"]] if call.request["partition"] else []
    columns = ("node", "partition", "state", "cpus", "memory", "limit", "gres")
    try:
        shown = _run("sinfo", "-h", "-N", *options, "-o", "row|%N|%P|%t|%c|%m|%l|%G")
    except RefusedError as error:
        return {"refused": error.answer, "nodes": []}
    return {"refused": None, "nodes": _rows(shown, columns)}


def check(call: Call) -> dict[str, Any]:
    """What a create needs here. Asked: root, probe (a file to read, or "")."""
    _find_commands()
    root, probe = _root(call.request), call.request["probe"]
    try:
        root.mkdir(parents=True, exist_ok=True)
        trouble = "" if os.access(root, os.W_OK) else f"{root} can't be written to"
    except OSError as error:
        trouble = f"{root} can't be made: {error.strerror}"
    missing = [command for command in COMMANDS if shutil.which(command) is None]
    return {"missing": missing, "trouble": trouble, "probe": _text(Path(probe)) if probe else ""}


def _answer(folder: Path, act: Any) -> dict[str, Any]:
    """Act, then look; what SLURM refused, and whether somebody else is at it, stands beside what there is."""
    _find_commands()
    refused: dict[str, Any] | None = None
    held = False
    try:
        act()
    except HeldError:
        held = True
    except RefusedError as error:
        refused = error.answer
    try:
        jobs = _jobs("-t", "all", "-n", folder.name)
        sight = _sight(folder)
        ids = [job["id"] for job in jobs]
        kept = sight["job"] if sight is not None else ""
        if kept and kept not in ids:
            jobs += _accounted(kept)
        for job in jobs:
            job.update(_details(job["id"]))
    except RefusedError as error:
        return {"refused": refused or error.answer, "held": held, "jobs": None, "folder": None}
    return {"refused": refused, "held": held, "jobs": jobs, "folder": sight}


def _send(folder: Path, asked: dict[str, Any]) -> None:
    """Adopt the job of this attempt, or submit it. A refused submit leaves a record that never had a node."""
    word = f"widelane-attempt={asked['attempt']}"
    known = [
        job["id"]
        for job in _jobs("-t", "all", "-n", asked["name"])
        if word in job["comment"].split(",") and (job["nodes"] or job["state"] == "PENDING")
    ]
    if known:
        _write(folder / "job", known[0])
        return
    _write(folder / "attempt", asked["attempt"])
    _write(folder / "intent", json.dumps(asked["intent"]))
    _write(folder / "keeper.py", asked["keeper"])
    log = str(folder / "log").replace("%", "%%")
    own = (f"--job-name={asked['name']}", f"--chdir={folder}", f"--output={log}")
    said = _run("sbatch", "--parsable", *own, *asked["options"], text=asked["script"])
    _write(folder / "job", said.strip().splitlines()[-1].partition(";")[0])


def _jobs(*options: str) -> list[dict[str, Any]]:
    """This user's jobs with our mark; those that ended only with `-t all`, while the controller remembers them."""
    shown = _run("squeue", "-h", "-u", str(os.getuid()), *options, "-o", "row|" + _ROW)
    return [job for job in _rows(shown, _COLUMNS) if MARK in job["comment"].split(",")]


def _rows(shown: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """Lines of the form `row|...` with a value for each column; what else stands between them is no answer."""
    lines = [line.split("|", len(columns))[1:] for line in shown.splitlines() if line.startswith("row|")]
    return [
        {name: values[place] for place, name in enumerate(columns)} for values in lines if len(values) == len(columns)
    ]


def _details(job: str) -> dict[str, Any]:
    """What squeue has no columns for."""
    try:
        shown = _run("scontrol", "-o", "show", "job", job)
    except RefusedError:
        return {}
    pairs = [word.partition("=") for word in shown.split() if "=" in word]
    words = {key: value for key, _, value in pairs}
    return {name: words[key] for key, name in _DETAILS.items() if key in words}


def _accounted(job: str) -> list[dict[str, Any]]:
    """A job that the controller has forgotten, where there is accounting."""
    try:
        shown = _run(
            "sacct", "-n", "-X", "-P", "-j", job, "-o", "JobID,JobName,State,ExitCode,DerivedExitCode,NodeList"
        )
    except RefusedError:
        return []
    rows = "\n".join(f"row|{line}" for line in shown.splitlines() if line.startswith(f"{job}|"))
    columns = ("id", "name", "state", "exit_code", "derived_exit_code", "nodes")
    blank = dict.fromkeys(_COLUMNS, "")
    return [{**blank, **row, "comment": MARK} for row in _rows(rows, columns)]


def _sight(folder: Path) -> dict[str, Any] | None:
    """What a folder says; None when there is none. `silent`: seconds since the keeper's last sign of life."""
    if not folder.is_dir():
        return None
    try:
        progress = json.dumps(json.loads(_text(folder / "host" / "progress.json")))
    except ValueError:
        progress = ""
    files = {name: _text(folder / name) for name in ("job", "attempt", "claim", "ended", "cancelled")}
    return {
        **files,
        "name": folder.name,
        "intent": _json(_text(folder / "intent")),
        "deleting": (folder / "deleting").exists(),
        "silent": _silent_for(folder),
        "now": time.time(),
        "progress": progress,
        "log": _tail(folder / "log"),
    }


def _silent_for(folder: Path) -> float:
    """By the clock of the file system, which stamps both files."""
    try:
        beat = (folder / "beat").stat().st_mtime
        now = folder / f".now-{os.getpid()}"
        now.touch()
        seconds = now.stat().st_mtime - beat
        now.unlink()
    except OSError:
        return 1e9
    return seconds


def _is_over(folder: Path, silence: float) -> bool:
    """Whether nothing of a job that isn't in the queue can be at work: a node that was lost may work on."""
    claim = _text(folder / "claim")
    if not claim or _text(folder / "ended"):
        return True
    states = [job["state"] for job in _jobs("-t", "all", "-n", folder.name) if job["id"] == claim]
    if states and states[0] != "NODE_FAIL":
        return True
    return _silent_for(folder) >= silence


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None, None, None]:
    """The folder's lock. A file system without locks is no reason to stop: of two jobs, only one gets the claim."""
    if not folder.is_dir():
        yield
        return
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + _LOCK_SECONDS
        while not _try_lock(fd):
            if time.monotonic() > until:
                raise HeldError
            time.sleep(0.05)
        if not folder.is_dir() or not _is_same(fd, folder / "lock"):
            raise HeldError  # whoever held it took the folder away
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _is_same(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _run(command: str, *options: str, text: str = "") -> str:
    """What a client command printed. Raises `RefusedError`."""
    try:
        done = subprocess.run(
            [command, *options],
            input=text.encode(),
            capture_output=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RefusedError(command, None, f"{command} didn't answer within {_COMMAND_SECONDS:g} s") from None
    except FileNotFoundError:
        raise RefusedError(command, 127, f"{command}: command not found") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace") or done.stdout.decode(errors="replace")
        raise RefusedError(command, done.returncode, said)
    return done.stdout.decode(errors="replace")


def _find_commands() -> None:
    """Where a plain ssh command doesn't see SLURM, a login shell may."""
    if shutil.which(COMMANDS[0]) is not None:
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        shell = os.environ.get("SHELL") or "/bin/sh"
        told = subprocess.run(
            [shell, "-lc", 'printf "\\n%s" "$PATH"'],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=True,
        )
        os.environ["PATH"] = told.stdout.decode(errors="replace").splitlines()[-1]


def _remove_later(folder: Path) -> None:
    """Remove a tree that may be large without anybody waiting for it."""
    subprocess.run(
        ["/bin/sh", "-c", 'exec rm -rf "$1" &', "sh", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        check=False,
    )


def _root(asked: dict[str, Any]) -> Path:
    """The folder for work: absolute, from `~`, or else relative to the home folder."""
    return Path("~").expanduser() / Path(asked["root"]).expanduser()


def _attempt(folder: Path) -> str:
    return _text(folder / "attempt")


def _write(path: Path, text: str) -> None:
    temp = path.with_name(f"{path.name}.new")
    with temp.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temp.replace(path)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
