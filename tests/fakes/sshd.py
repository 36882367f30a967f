"""A real sshd on loopback with keys, hosts and people of its own; and the ssh_config of a user who knows it."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

_BIN = "/usr/sbin:/usr/local/sbin:/sbin"
_PATIENCE = 15.0


def missing() -> str:
    """Why there can't be one here, or ""."""
    if shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:{_BIN}") is None:
        return "no sshd (package openssh-server)"
    if shutil.which("ssh") is None or shutil.which("ssh-keygen") is None:
        return "no ssh (package openssh-client)"
    return ""


class Sshd:
    """One server below `folder`. Logins have `home` as their home folder, and the environment `env`."""

    def __init__(self, folder: Path, env: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.env = {"HOME": str(self.home), **(env or {})}
        self.config = folder / "ssh_config"
        self.known_hosts = folder / "known_hosts"
        self.port = _free_port()
        self._server: subprocess.Popen[bytes] | None = None
        for name in ("host", "other_host", "user", "stranger"):
            make_key(folder / name)
        shutil.copy(folder / "user.pub", folder / "authorized_keys")
        self.trust("host")
        self.write_config()

    def write_config(self, key: str = "user", **options: str) -> None:
        """The user's side: host `box`."""
        lines = {
            "HostName": "127.0.0.1",
            "Port": str(self.port),
            "User": getpass.getuser(),
            "IdentityFile": str(self.folder / key),
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "PreferredAuthentications": "publickey",
            "UserKnownHostsFile": str(self.known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            **options,
        }
        self.config.write_text("Host box\n" + "".join(f"  {name} {value}\n" for name, value in lines.items()))

    def trust(self, *keys: str) -> None:
        """The hosts' keys that the user knows."""
        known = [(self.folder / f"{key}.pub").read_text().split()[:2] for key in keys]
        self.known_hosts.write_text("".join(f"[127.0.0.1]:{self.port} {' '.join(words)}\n" for words in known))

    def start(self, key: str = "host", *options: str) -> None:
        """Start, and wait until it listens."""
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True, mode=0o755)
        settings = self.folder / "sshd_config"
        environment = " ".join(f'"{name}={value}"' for name, value in self.env.items())
        settings.write_text(
            "\n".join(
                [
                    f"Port {self.port}",
                    "ListenAddress 127.0.0.1",
                    f"HostKey {self.folder / key}",
                    f"AuthorizedKeysFile {self.folder / 'authorized_keys'}",
                    "PidFile none",
                    "StrictModes no",
                    "UsePAM no",
                    "PasswordAuthentication no",
                    "PermitRootLogin yes",
                    "PrintMotd no",
                    "PermitUserEnvironment no",
                    f"SetEnv {environment}",
                    *options,
                    "",
                ]
            )
        )
        program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:{_BIN}")
        assert program is not None
        command = [str(Path(program).resolve()), "-D", "-e", "-f", str(settings)]
        with (self.folder / "sshd.log").open("ab") as log:
            self._server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + _PATIENCE
        while not self._listens():
            assert self._server.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.01)

    def stop(self) -> None:
        """Listen no more; connections go on."""
        if self._server is not None:
            self._server.terminate()
            self._server.wait()
            self._server = None

    def cut(self) -> int:
        """End every connection from the server's side, as a network does; how many processes carried them."""
        carried = self.connections()
        for pid in carried:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return len(carried)

    def connections(self) -> list[int]:
        """Processes of this server that carry a connection."""
        return [] if self._server is None else _children(self._server.pid)

    def said(self) -> str:
        """What the server logged."""
        return (self.folder / "sshd.log").read_text(errors="replace")

    def hang_up(self, *sockets: Path) -> None:
        """End the connections that users hold open at these sockets."""
        for path in sockets:
            command = ["ssh", "-F", str(self.config), "-S", str(path), "-O", "exit", "box"]
            subprocess.run(command, capture_output=True, check=False)

    def end(self) -> None:
        """End the server and everything that it carries."""
        self.cut()
        self.stop()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def make_key(path: Path) -> None:
    """An ed25519 key without passphrase."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", path.name, "-f", str(path)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _children(parent: int) -> list[int]:
    """Processes right below `parent`, and below those the ones that are sshd too."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text(errors="replace")
                if "(sshd" in stat:
                    below.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found = list(below.get(parent, []))
    for pid in found:
        found += below.get(pid, [])
    return found
