"""The first process of a simulated VM. Standard library only; run by path, once a VM:

    python -I -S vminit.py FOLDER

FOLDER/vm.json holds {"script": path or null, "env": {...}, "cwd": path, "log": path, "isolation": "auto" | "namespace"
| "reaper"}. FOLDER/vm.pid appears once the VM lives: {"pid", "start", "isolation"}, as the host sees it.

Two kinds of init. `namespace`: PID 1 of a PID namespace with its own /proc; the kernel kills everything in it
when it dies. `reaper`: a child sub-reaper, for hosts without the privilege; orphans come back to it, so that
the tree below it is always the whole VM. Init holds FOLDER/vm.lock for life: a second launch finds the first.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

_CLONE_NEWNS = 0x00020000
_CLONE_NEWPID = 0x20000000
_MS_REC_PRIVATE = 0x4000 | 0x40000
_PR_SET_CHILD_SUBREAPER = 36

_READY, _BUSY, _UNABLE = b"r", b"b", b"u"


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of a live process; None when there is none (or a zombie)."""
    found = _stat(pid)
    return None if found is None or found[0] in "ZX" else found[2]


def processes() -> list[int]:
    """Every process that this one can see."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def descendants(root: int) -> list[int]:
    """Live processes below `root`, in no order; zombies are left out (their parent's business)."""
    children: dict[int, list[int]] = {}
    zombies: set[int] = set()
    for pid in processes():
        found = _stat(pid)
        if found is not None:
            children.setdefault(found[1], []).append(pid)
            if found[0] in "ZX":
                zombies.add(pid)
    below: list[int] = []
    todo = [root]
    while todo:
        for child in children.get(todo.pop(), ()):
            todo.append(child)
            if child not in zombies:
                below.append(child)
    return below


def kill_below(root: int) -> bool:
    """One round of SIGKILL to everything below `root`; whether there was anything left to kill."""
    found = descendants(root)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return bool(found)


def _stat(pid: int) -> tuple[str, int, int] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return (fields[0], int(fields[1]), int(fields[19])) if len(fields) > 19 else None


def _libc(name: str, *arguments: int | bytes | None) -> bool:
    return bool(getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) == 0)


class _Init:
    """The life of the VM's first process, from the lock to the end."""

    def __init__(self, folder: Path, isolation: str) -> None:
        self._folder = folder
        self._isolation = isolation
        self._spec = json.loads((folder / "vm.json").read_text(encoding="utf-8"))
        self._script = 0

    def run(self, report: int, go: int) -> NoReturn:
        """Report readiness, wait for the word to go (end of file: the launcher died), then live."""
        lock = os.open(self._folder / "vm.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.write(report, _BUSY)
            os._exit(0)
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        os.write(report, _READY)
        os.close(report)
        if os.read(go, 1) != b"g":
            os._exit(0)
        os.close(go)
        (self._folder / "init.pid").write_text(f"{os.getpid()}\n", encoding="utf-8")
        if self._spec["script"]:
            self._start_script()
        self._live()

    def _start_script(self) -> None:
        self._script = os.fork()
        if self._script:
            return
        try:
            os.setsid()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            log = os.open(self._spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            os.closerange(3, 256)
            os.chdir(self._spec["cwd"])
            os.execve("/bin/sh", ["sh", self._spec["script"]], self._spec["env"])
        finally:
            os._exit(127)

    def _live(self) -> NoReturn:
        while True:
            if signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) == signal.SIGTERM:
                if self._isolation == "reaper":
                    while kill_below(os.getpid()):
                        self._reap()
                os._exit(0)
            self._reap()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._script:
                    self._note(f"startup-script exit status {os.waitstatus_to_exitcode(status)}")

    def _note(self, line: str) -> None:
        with Path(self._spec["log"]).open("a", encoding="utf-8") as log:
            log.write(line + "\n")


def _enter_namespace(folder: Path, report: int, go: int, tell: int) -> NoReturn:
    """Fork PID 1 of a new namespace and tell its pid to the launcher."""
    if not _libc("unshare", _CLONE_NEWPID | _CLONE_NEWNS):
        os.write(report, _UNABLE)
        os._exit(0)
    child = os.fork()
    if child:
        os.write(tell, f"{child}\n".encode())
        os._exit(0)
    os.close(tell)
    os.setsid()
    mounted = _libc("mount", None, b"/", None, _MS_REC_PRIVATE, None) and _libc(
        "mount", b"proc", b"/proc", b"proc", 0, None
    )
    if not mounted:
        os.write(report, _UNABLE)
        os._exit(0)
    _Init(folder, "namespace").run(report, go)


def _become_reaper(folder: Path, report: int, go: int, tell: int) -> NoReturn:
    os.setsid()
    if not _libc("prctl", _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        os.write(report, _UNABLE)
        os._exit(0)
    os.write(tell, f"{os.getpid()}\n".encode())
    os.close(tell)
    _Init(folder, "reaper").run(report, go)


def _launch(folder: Path, isolation: str) -> bytes:
    """Start one kind of init: ready (vm.pid is written), busy (another lives), or unable."""
    report_out, report_in = os.pipe()
    tell_out, tell_in = os.pipe()
    go_out, go_in = os.pipe()
    child = os.fork()
    if not child:
        for end in (report_out, tell_out, go_in):
            os.close(end)
        enter = _enter_namespace if isolation == "namespace" else _become_reaper
        enter(folder, report_in, go_out, tell_in)
    for end in (report_in, tell_in, go_out):
        os.close(end)
    with os.fdopen(tell_out, "rb") as told, os.fdopen(report_out, "rb") as reported:
        pid = told.readline().strip()
        answer = reported.read(1) or _UNABLE
    if answer == _READY:
        _publish(folder, int(pid), isolation)
        os.write(go_in, b"g")
    os.close(go_in)
    return answer


def _publish(folder: Path, pid: int, isolation: str) -> None:
    draft = folder / "vm.pid.new"
    with draft.open("w", encoding="utf-8") as file:
        json.dump({"pid": pid, "start": start_time(pid), "isolation": isolation}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / "vm.pid")


def main(folder: Path) -> int:
    """Start the VM that FOLDER describes. 0: it lives (or lived already); 1: no kind of init works here."""
    wanted = json.loads((folder / "vm.json").read_text(encoding="utf-8"))["isolation"]
    for isolation in ("namespace", "reaper"):
        if wanted in {"auto", isolation} and _launch(folder, isolation) != _UNABLE:
            return 0
    sys.stderr.write(f"vminit: isolation {wanted!r} isn't possible on this host\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
