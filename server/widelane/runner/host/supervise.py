"""One attempt, from the lock to the exit record.

The supervisor leads its own session and outlives scheduler and zygote. It holds the attempt's lock for life,
runs one process in a session of its own, and ends only when that process and everything it left are gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

from . import outputs, processes
from .attempt import Folder, Record, locked, read_record, write_record
from .judge import judge, oom_kills
from .judge import snapshot as snapshot_declared

WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)
"""Blocked for life and waited for, so that none comes between two steps."""

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_KILL_PATIENCE = 30.0
_RECORD_PATIENCE = 60.0


class SpawnError(Exception):
    """The process could not be started; the text says why."""


def supervise(folder: Folder) -> None:
    """Run the attempt unless it is void, was started before, or is being run. `WATCHED` must be blocked."""
    with locked(folder.lock) as held:
        if held is None or folder.void.exists() or folder.start.exists():
            return
        request = read_record(folder.request)
        if request is None:
            return
        started = time.time()
        begin = time.monotonic()
        start = {"nonce": request["nonce"], "pid": os.getpid(), "started": started, **_before(request)}
        write_record(folder.start, start)
        record = _Process(folder, request).run()
        seconds = time.monotonic() - begin
        record.update(nonce=request["nonce"], started=started, ended=started + seconds, seconds=round(seconds, 6))
        if "judge" in request:
            record["verdict"] = judge(record, request, start, folder.log)
        _write_stubbornly(folder.exit, record)


def _before(request: Record) -> Record:
    """What is there already. A folder that is missing or closed shows when the process is started."""
    cwd = Path(request["cwd"])
    if "judge" in request:
        return {"before": snapshot_declared(cwd, request["judge"]["outputs"]), "oom_kills": oom_kills()}
    patterns = request["outputs"]
    with contextlib.suppress(OSError):
        if cwd.is_dir():
            outputs.make_folders(cwd, patterns)
    return {"before": outputs.snapshot(cwd, patterns)}


def _write_stubbornly(path: Path, record: Record) -> None:
    """A full disk may be emptied; while this waits the attempt counts as alive."""
    deadline = time.monotonic() + _RECORD_PATIENCE
    while True:
        try:
            write_record(path, record)
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


class _Process:
    """The process of one attempt, and whatever descends from it."""

    def __init__(self, folder: Folder, request: Record) -> None:
        self._folder = folder
        self._grace = float(request["grace"])
        self._request = request
        self._pid = 0
        self._status: Optional[int] = None
        self._usage: Optional[resource.struct_rusage] = None
        self._childless = False
        self._stopped = False
        self._timed_out = False
        timeout = request.get("timeout")
        self._expires = None if timeout is None else time.monotonic() + float(timeout)
        self._kill_at: Optional[float] = None
        self._contained = processes.adopt_orphans()

    def run(self) -> Record:
        """Start it, see it end, and clear up; returns how it went."""
        try:
            self._pid = _spawn(self._folder, self._request)
        except SpawnError as error:
            return {"exit_code": None, "signal": None, "spawn_error": str(error), "stopped": False, "leftovers": 0}
        while not self._reap():
            self._pause()
        leftovers = self._clear()
        return {**self._how(), "stopped": self._stopped, "timed_out": self._timed_out, "leftovers": leftovers}

    def _how(self) -> Record:
        status = self._status or 0
        by_signal = os.WIFSIGNALED(status)
        used = self._usage
        return {
            "exit_code": None if by_signal else os.WEXITSTATUS(status),
            "signal": os.WTERMSIG(status) if by_signal else None,
            "rusage": {"utime": used.ru_utime, "stime": used.ru_stime} if used else {},
            "peak_rss_kib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,
        }

    def _reap(self) -> bool:
        """Collect every child that ended; True once the process itself has."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    return self._status is not None
                if pid == self._pid:
                    self._status, self._usage = status, usage
        self._childless = True
        return True

    def _pause(self, at_most: Optional[float] = None) -> None:
        """Sleep until a child ends, someone asks to stop, or it is time to kill."""
        now = time.monotonic()
        waits = [at_most] if at_most is not None else []
        waits.extend(max(0.0, at - now) for at in (self._kill_at, self._expires) if at is not None)
        told = signal.sigtimedwait(WATCHED, min(waits)) if waits else signal.sigwaitinfo(WATCHED)
        if told is not None and told.si_signo != signal.SIGCHLD and not self._stopped:
            self._stopped = True
            self._end_tree()
        if self._expires is not None and time.monotonic() >= self._expires:
            self._expires = None
            self._timed_out = self._status is None
            self._end_tree()
        if self._kill_at is not None and time.monotonic() >= self._kill_at:
            processes.signal_all(self._tree(), signal.SIGKILL)
            self._kill_at = time.monotonic() + 1.0

    def _end_tree(self) -> None:
        processes.signal_all(self._tree(), signal.SIGTERM)
        until = time.monotonic() + self._grace
        self._kill_at = until if self._kill_at is None else min(self._kill_at, until)

    def _clear(self) -> int:
        """End what the process left behind; returns how many there were."""
        left = self._tree()
        if left:
            self._end_tree()
        give_up = time.monotonic() + self._grace + _KILL_PATIENCE
        while self._tree() and time.monotonic() < give_up:
            self._pause(None if self._contained else 0.05)
            self._reap()
        return len(left)

    def _tree(self) -> list[int]:
        """All that descends from the process; where orphans can't be adopted, all that carries its mark."""
        if self._contained:
            return [] if self._childless else processes.descendants(os.getpid())
        return processes.marked(b"WIDELANE_ATTEMPT=" + self._request["nonce"].encode())


def _spawn(folder: Folder, request: Record) -> int:
    """Start the process, in a session of its own; returns its pid. Raises `SpawnError`.

    By posix_spawn, since a fork would copy this process once more for each unit.
    """
    argv: list[str] = request["argv"]
    env = {**os.environ, **request["env"]}
    log = os.fspath(folder.log)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    redirect = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, append, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    try:
        os.chdir(request["cwd"])
        program = _find(argv[0], env)
        return os.posix_spawn(
            program, argv, env, file_actions=redirect, setsid=True, setsigmask=(), setsigdef=_IGNORED_BY_PYTHON
        )
    except (OSError, ValueError) as error:
        raise SpawnError(f"{argv[0]}: {error}") from error


def _find(name: str, env: Mapping[str, str]) -> str:
    """The program that a shell with this environment would take; raises FileNotFoundError."""
    if "/" in name:
        return name
    for folder in os.get_exec_path(env):
        path = Path(folder, name)
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    raise FileNotFoundError(errno.ENOENT, "not on PATH")
