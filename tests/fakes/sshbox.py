"""A host with GPUs behind a real sshd, as the ssh lane sees one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.sshd import Sshd
from widelane.config import Settings
from widelane.config.settings import SshSettings
from widelane.lanes.ssh.far.folder import Folder
from widelane.lanes.ssh.far.folder import yard as yard_of
from widelane.transport.line import control_folder


class SshBox:
    """The host, and the settings of those who use it from `home`."""

    def __init__(self, folder: Path, gpus: int = 4) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self.server = Sshd(folder / "far", {"PATH": f"{self.bin}:{os.environ['PATH']}"})
        self.workdir = self.server.home / "work"
        self.homes: list[Path] = []
        self.gpus(gpus)

    def gpus(self, count: int) -> None:
        """How many its nvidia-smi lists."""
        rows = [f"{i}, GPU-{i:08x}, NVIDIA A100-SXM4-80GB, 81920" for i in range(count)]
        self.nvidia_smi("cat <<'END'\n" + "\n".join(rows) + "\nEND")

    def nvidia_smi(self, script: str) -> None:
        tool = self.bin / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)

    def settings(self, home: Path, gpus: int = 4) -> Settings:
        """Those of one user: the lane `ssh.box`."""
        self.homes.append(home)
        box = SshSettings(host="box", gpus=gpus, workdir=str(self.workdir), ssh_config=str(self.server.config))
        return Settings(home=home, ssh={"box": box})

    def folder(self, name: str) -> Folder:
        """The folder of a machine."""
        return Folder(yard_of(str(self.workdir)) / name)

    def disconnect(self) -> None:
        """End the connections that users hold open."""
        folders = [control_folder(home) for home in self.homes]
        self.server.hang_up(*[path for folder in folders for path in folder.glob("*") if path.is_socket()])
        self.homes.clear()


@contextmanager
def running(folder: Path, gpus: int = 4) -> Iterator[SshBox]:
    """A box that answers; at the end nothing of it is left."""
    box = SshBox(folder, gpus)
    box.server.start()
    try:
        yield box
    finally:
        box.disconnect()
        box.server.end()
