"""The lines to hosts: the command that starts Python there, and the one connection that all calls to a host share."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shlex
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from widelane.errors import ConfigError, LaneAuthError, LaneError
from widelane.transport.program import START
from widelane.transport.trouble import Sort, UnfitError, UnreachedError, judge_ssh, remedy

CHANNELS = 8
"""Calls at once on one connection; sshd's own limit (MaxSessions) is ten."""
_OPTIONS = (
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "ConnectionAttempts=1",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "RequestTTY=no",
    "RemoteCommand=none",
    "PermitLocalCommand=no",
    "LogLevel=INFO",
)
_STAYS_SECONDS = 120
_WARM_SECONDS = 30.0
"""How long a connection is taken for open without asking; without it, ssh logs in anew for each call."""
_OPEN_SECONDS = 40.0
_CHECK_SECONDS = 5.0
_LONGEST_SOCKET = 107 - 17
"""A socket's name has 107 bytes; ssh first binds one with 17 more."""


class Line(Protocol):
    """A way to run Python on a host."""

    @property
    def target(self) -> str:
        """The host in words."""
        ...

    def command(self) -> list[str]:
        """The command whose stdin and stdout lead to `program.START` on the host."""
        ...

    def channel(self) -> contextlib.AbstractContextManager[None]:
        """Hold one of the host's channels, with the connection open.

        Raises:
            LaneAuthError, UnfitError, UnreachedError: there is no connection.
        """
        ...

    def login(self) -> str:
        """The command that opens the connection by hand, where questions can be answered."""
        ...

    def suspect(self) -> None:
        """A call got no answer: don't take the connection for good any more."""
        ...


class HereLine:
    """This machine, without ssh."""

    target = "this machine"

    def command(self) -> list[str]:
        """Our own Python."""
        return [sys.executable, "-c", START]

    @contextmanager
    def channel(self) -> Generator[None]:
        """Nothing to hold."""
        yield

    def login(self) -> str:
        """Nothing to open."""
        return "true"

    def suspect(self) -> None:
        """Nothing to doubt."""


@dataclass(slots=True)
class _Shared:
    """What all users of one connection in this process share."""

    channels: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(CHANNELS))
    opening: threading.Lock = field(default_factory=threading.Lock)
    good_until: float = float("-inf")


_shared: dict[Path, _Shared] = {}
_shared_lock = threading.Lock()


class SshLine:
    """The system's ssh with one master connection, which is opened first and apart: so a call that fails to connect
    is known to have done nothing. It never asks anything; users, jump hosts, keys and Match blocks are ssh_config's.
    """

    def __init__(
        self,
        lane: str,
        host: str,
        home: Path,
        *,
        config: Path | None = None,
        python: str = "python3",
        connect_seconds: int = 10,
    ) -> None:
        """`host` is what ssh takes; `config` replaces the user's ssh_config; `python` is a command of the host.

        Raises:
            ConfigError: that can't be a host.
        """
        if not host or host.startswith("-") or any(sign.isspace() for sign in host):
            raise ConfigError(f"{lane}: {host!r} is not a host for ssh", hint="host = what you type after `ssh`")
        self._lane = lane
        self._host = host
        self._python = python
        self._connect_timeout = f"ConnectTimeout={connect_seconds}"
        own = ["-F", str(config.absolute())] if config is not None else []
        name = hashlib.sha256("\0".join([host, *own]).encode()).hexdigest()[:12]
        self.socket = control_folder(home) / name
        self._base = ["ssh", *own, "-S", str(self.socket)]
        with _shared_lock:
            self._shared = _shared.setdefault(self.socket, _Shared())

    @property
    def target(self) -> str:
        """The host in words."""
        return self._host

    def command(self) -> list[str]:
        """ssh over the master connection."""
        remote = f"{shlex.quote(self._python)} -c '{START}'"
        return [*self._base, *_options("ControlMaster=no", self._connect_timeout), "-T", "--", self._host, remote]

    @contextmanager
    def channel(self) -> Generator[None]:
        """One of the host's channels, once the connection is open."""
        with self._shared.channels:
            if time.monotonic() >= self._shared.good_until:
                with self._shared.opening:
                    self._open()
                    self._shared.good_until = time.monotonic() + _WARM_SECONDS
            yield

    def login(self) -> str:
        """ssh in the foreground of a terminal, for as long as a working day."""
        return shlex.join([*self._base, "-f", "-N", "-M", "-o", "ControlPersist=8h", self._host])

    def suspect(self) -> None:
        """Look at the connection before the next call; a master that doesn't answer is left behind."""
        self._shared.good_until = float("-inf")
        if self._control("check") is None:
            self.socket.unlink(missing_ok=True)

    def close(self) -> None:
        """End the master connection; what runs on the host goes on."""
        self._shared.good_until = float("-inf")
        self._control("exit")

    def _open(self) -> None:
        if time.monotonic() < self._shared.good_until:
            return
        self._make_folder()
        # Of two that open at once one would stay outside the socket, a connection that nobody uses and nobody ends.
        with self.socket.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self._control("check") == 0:
                return
            self.socket.unlink(missing_ok=True)
            code, said = self._connect()
        if code is None:
            raise UnreachedError(self._lane, f"{self._host} didn't answer within {_OPEN_SECONDS:g} s")
        if code != 0:
            raise self.failure(said)

    def _connect(self) -> tuple[int | None, str]:
        options = _options("ControlMaster=yes", f"ControlPersist={_STAYS_SECONDS}", self._connect_timeout)
        command = [*self._base, *options, "-f", "-N", "-T", "--", self._host]
        with tempfile.TemporaryFile() as told:
            try:
                code = _quietly(command, told.fileno(), _OPEN_SECONDS)
            except FileNotFoundError:
                raise ConfigError(
                    f"{self._lane}: ssh isn't installed", hint="install the OpenSSH client (package openssh-client)"
                ) from None
            told.seek(0)
            return code, told.read().decode(errors="replace")

    def failure(self, said: str) -> LaneError:
        """What it means that there is no connection."""
        trouble = judge_ssh(said)
        message = f"{self._host}: {trouble.message}"
        if trouble.sort is Sort.AUTH:
            return LaneAuthError(self._lane, message, hint=remedy(trouble, said, self.login))
        if trouble.sort is Sort.CONFIG:
            return UnfitError(self._lane, message, hint=f"try `ssh {self._host}`", code=trouble.code)
        return UnreachedError(self._lane, message)

    def _control(self, verb: str) -> int | None:
        """Ask the master; None when it doesn't answer."""
        try:
            return _quietly([*self._base, "-O", verb, "--", self._host], subprocess.DEVNULL, _CHECK_SECONDS)
        except FileNotFoundError:
            return 255

    def _make_folder(self) -> None:
        """The folder of sockets, which must be ours alone: whoever writes there is logged in as us."""
        folder = self.socket.parent
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            found = folder.lstat()
        except OSError as error:
            raise ConfigError(f"{folder} can't be made: {error}", hint="set WIDELANE_HOME") from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise ConfigError(f"{folder} must be a folder that only you can use", hint=f"remove it: rm -r {folder}")


class PassingLine(SshLine):
    """A line for one look: over a connection that is open already, else by a login of its own.

    It leaves nothing behind: no folder, no socket, no connection, no line in known_hosts.
    """

    def command(self) -> list[str]:
        """ssh, which opens no connection for others."""
        command = super().command()
        return [*command[: len(self._base)], "-o", "UpdateHostKeys=no", *command[len(self._base) :]]

    @contextmanager
    def channel(self) -> Generator[None]:
        """Nothing is opened before the call."""
        yield

    def suspect(self) -> None:
        """Nobody else's connection is judged by a look."""


def _options(*more: str) -> list[str]:
    return [word for option in (*_OPTIONS, *more) for word in ("-o", option)]


def control_folder(home: Path) -> Path:
    """A folder below the home; where that makes names too long, one of this user's for that home."""
    folder = home.absolute() / "ssh"
    if len(os.fsencode(folder)) + 1 + 12 <= _LONGEST_SOCKET:
        return folder
    short = hashlib.sha256(os.fsencode(folder)).hexdigest()[:10]
    return Path(tempfile.gettempdir()) / f"widelane-{os.getuid()}-{short}"


def _quietly(command: list[str], said: int, seconds: float) -> int | None:
    """The exit code, None after `seconds`. In a session of its own, so that it has no terminal to ask on."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        cwd="/",
        start_new_session=True,
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None
