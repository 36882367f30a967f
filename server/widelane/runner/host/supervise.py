"""One attempt, from the lock to the exit record.

The supervisor leads its own session and outlives scheduler and zygote. It holds the attempt's lock for life,
runs one process in a session of its own, and ends only when that process and everything it left are gone.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Optional

from . import outputs, processes
from .attempt import Folder, Record, locked, read_record, write_record

_WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)
_KILL_PATIENCE = 30.0
_RECORD_PATIENCE = 60.0


class SpawnError(Exception):
    """The process could not be started; the text says why."""


def supervise(folder: Folder) -> None:
    """Run the attempt unless it is void, was started before, or is being run."""
    with locked(folder.lock) as held:
        if held is None or folder.void.exists() or folder.start.exists():
            return
        request = read_record(folder.request)
        if request is None:
            return
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        cwd = Path(request["cwd"])
        started = time.time()
        begin = time.monotonic()
        write_record(
            folder.start,
            {
                "nonce": request["nonce"],
                "pid": os.getpid(),
                "started": started,
                "before": _before(cwd, request["outputs"]),
            },
        )
        record = _Process(folder, request).run()
        seconds = time.monotonic() - begin
        record.update(nonce=request["nonce"], started=started, ended=started + seconds, seconds=round(seconds, 6))
        _write_stubbornly(folder.exit, record)


def _before(cwd: Path, patterns: list[str]) -> outputs.Marks:
    """The folder may be missing or closed; then starting the process tells."""
    with contextlib.suppress(OSError):
        if cwd.is_dir():
            outputs.make_folders(cwd, patterns)
    return outputs.snapshot(cwd, patterns)


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


@dataclass
class _Process:
    """The process of one attempt, and whatever descends from it."""

    folder: Folder
    request: Record
    pid: int = 0
    status: Optional[int] = None
    usage: Optional[resource.struct_rusage] = None
    childless: bool = False
    stopped: bool = False
    kill_at: Optional[float] = None
    contained: bool = field(default_factory=processes.adopt_orphans)

    def run(self) -> Record:
        try:
            self.pid = _spawn(self.folder, self.request)
        except SpawnError as error:
            return {"exit_code": None, "signal": None, "spawn_error": str(error), "stopped": False, "leftovers": 0}
        while not self._reap():
            self._pause(self.kill_at)
        leftovers = self._clear()
        return {**self._how(), "stopped": self.stopped, "leftovers": leftovers}

    def _how(self) -> Record:
        status = self.status or 0
        by_signal = os.WIFSIGNALED(status)
        used = self.usage
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
                    return self.status is not None
                if pid == self.pid:
                    self.status, self.usage = status, usage
        self.childless = True
        return True

    def _pause(self, until: Optional[float]) -> None:
        """Sleep until a child ends, someone asks to stop, or `until` (then kill)."""
        if until is None:
            told = signal.sigwaitinfo(_WATCHED)
        else:
            told = signal.sigtimedwait(_WATCHED, max(0.0, until - time.monotonic()))
        if told is None:
            processes.signal_all(self._tree(), signal.SIGKILL)
            self.kill_at = time.monotonic() + 1.0
        elif told.si_signo != signal.SIGCHLD and not self.stopped:
            self.stopped = True
            processes.signal_all(self._tree(), signal.SIGTERM)
            self.kill_at = time.monotonic() + self.request["grace"]

    def _clear(self) -> int:
        """End what the process left behind; returns how many there were."""
        left = self._tree()
        if not left:
            return 0
        processes.signal_all(left, signal.SIGTERM)
        now = time.monotonic()
        self.kill_at = min(self.kill_at or now + self.request["grace"], now + self.request["grace"])
        give_up = self.kill_at + _KILL_PATIENCE
        while self._tree() and time.monotonic() < give_up:
            self._pause(self.kill_at if self.contained else min(self.kill_at, time.monotonic() + 0.05))
            self._reap()
        return len(left)

    def _tree(self) -> list[int]:
        if self.contained:
            return [] if self.childless else processes.descendants(os.getpid())
        return processes.marked(b"WIDELANE_ATTEMPT=" + self.request["nonce"].encode())


def _spawn(folder: Folder, request: Record) -> int:
    """Start the process; returns once it runs the program asked for. Raises `SpawnError`."""
    try:
        log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        told, tell = os.pipe()
        parent = os.getpid()
        pid = os.fork()
    except OSError as error:
        raise SpawnError(str(error)) from error
    if pid == 0:
        _become(request, log, tell, parent)
    os.close(tell)
    os.close(log)
    with os.fdopen(told, "rb") as answer:
        failure = answer.read()
    if failure:
        os.waitpid(pid, 0)
        raise SpawnError(failure.decode(errors="replace"))
    return pid


def _become(request: Record, log: int, tell: int, parent: int) -> NoReturn:
    """In the child: turn into the program."""
    try:
        os.setsid()
        processes.die_with_parent()
        if os.getppid() != parent:
            os._exit(127)
        os.chdir(request["cwd"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        for signum in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(signum, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvpe(request["argv"][0], request["argv"], {**os.environ, **request["env"]})  # noqa: S606
    except (OSError, ValueError) as error:
        os.write(tell, f"{request['argv'][0]}: {error}".encode(errors="replace"))
    finally:
        os._exit(127)
