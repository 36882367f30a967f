"""The zygote: a small single-threaded process that forks one supervisor for each attempt folder it is handed.

It is started by exec, so that supervisors share a small memory and inherit nothing of the scheduler. Over a
socket pair come attempt folders; back go the supervisor's pid and a pidfd, taken before the child is reaped.
It ends when the scheduler's end closes. Supervisors live on when it dies; the scheduler makes another.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, Optional

from .attempt import Folder
from .supervise import WATCHED, supervise

PACKET = 16384


def serve(fd: int) -> int:
    """Fork supervisors until the scheduler's end is closed."""
    channel = socket.socket(fileno=fd)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    signal.signal(signal.SIGCHLD, _nothing)
    signal.set_wakeup_fd(woken)
    gc.collect()
    gc.freeze()
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poll.poll()}
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
        if channel.fileno() in ready:
            packet = channel.recv(PACKET)
            if not packet:
                return 0
            _fork(channel, packet, (wake, woken))
        _reap()


def _nothing(signum: int, frame: object) -> None:
    """A handler there must be, or the wake-up descriptor isn't written."""


def _fork(channel: socket.socket, packet: bytes, own: tuple[int, int]) -> None:
    path = os.fsdecode(packet)
    pid = os.fork()
    if pid == 0:
        _be_supervisor(channel, path, own)
    answer = json.dumps({"folder": path, "pid": pid}).encode()
    pidfd = _pidfd(pid)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        socket.send_fds(channel, [answer], [] if pidfd is None else [pidfd])
    if pidfd is not None:
        os.close(pidfd)


def _be_supervisor(channel: socket.socket, path: str, own: tuple[int, int]) -> None:
    code = 1
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
        signal.set_wakeup_fd(-1)
        for signum in WATCHED:
            signal.signal(signum, signal.SIG_DFL)
        os.setsid()
        channel.close()
        for fd in own:
            os.close(fd)
        supervise(Folder(Path(path)))
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _pidfd(pid: int) -> Optional[int]:
    """None where the kernel has no pidfds; then the scheduler looks at the attempt's lock from time to time."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


class Zygote:
    """The scheduler's end. `complaints` takes what zygote and supervisors have to say on stderr."""

    def __init__(self, runner: Path, complaints: Path) -> None:
        """Start one from the runner file. Raises OSError."""
        self.channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other, complaints.open("ab") as stderr:
            command = [sys.executable, "-S", "-E", "-X", "utf8", str(runner), "zygote", str(other.fileno())]
            self._process = subprocess.Popen(
                command,
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )

    def send(self, folder: Path) -> None:
        """Hand over an attempt folder. Raises OSError when the zygote is gone."""
        self.channel.send(os.fsencode(folder))

    def receive(self) -> Optional[tuple[str, int, Optional[int]]]:
        """(folder, pid, pidfd) of a forked supervisor; None when the zygote is gone."""
        try:
            packet, fds, _, _ = socket.recv_fds(self.channel, PACKET, 1)
        except OSError:
            return None
        if not packet:
            return None
        answer: dict[str, Any] = json.loads(packet)
        return answer["folder"], answer["pid"], fds[0] if fds else None

    def close(self) -> None:
        """End it. Supervisors go on."""
        self.channel.close()
        self._process.kill()
        self._process.wait()
