"""VMs as processes of this host: an init each, with its own root folder, PATH and environment."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from functools import cached_property
from pathlib import Path

from widelane.simcloud import smi, vminit
from widelane.simcloud.listening import HOST, Listener
from widelane.simcloud.records import Instance, Process

PYTHON_MIN = (3, 9)
_SYSTEM_PATH = "/usr/bin:/bin"
_GONE = ".gone"
_POWER_OFF = """#!/bin/sh
# Ends this VM: its first process leaves, and everything with it.
kill -s TERM "$(cat "{folder}/init.pid")"
"""


class LocalMachines:
    """Starts, finds and kills VMs under `folder`; safe to use after another server of the same folder died."""

    def __init__(self, folder: Path, listener: Listener, isolation: str = "auto") -> None:
        self._folder = folder
        self._listener = listener
        self._isolation = isolation
        for rest in folder.glob(f"*{_GONE}"):
            shutil.rmtree(rest, ignore_errors=True)
        self._launchers: dict[str, subprocess.Popen[bytes]] = {}

    def root(self, instance: Instance) -> Path:
        """The VM's root folder."""
        return self._folder / f"{instance.name}-{instance.id}"

    def open_port(self, port: int) -> int:
        """Listen for a metadata server; 0 chooses. The port."""
        return self._listener.open(port)

    def close_port(self, port: int) -> None:
        """Stop listening."""
        self._listener.close(port)

    def boot(self, instance: Instance, gpus: tuple[smi.Gpu, ...]) -> None:
        """Start the VM unless it was started before."""
        if instance.id in self._launchers:
            return
        root = self.root(instance)
        self._lay_out(root, instance, gpus)
        with (root / "launch.log").open("ab") as log:
            self._launchers[instance.id] = subprocess.Popen(
                [sys.executable, "-I", "-S", str(Path(vminit.__file__)), str(root)],
                env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def process(self, instance: Instance) -> Process | None:
        """The VM's first process once it is there, also when an earlier server started it."""
        with contextlib.suppress(OSError, ValueError):
            found = json.loads((self.root(instance) / "vm.pid").read_text(encoding="utf-8"))
            return Process(found["pid"], found["start"] or 0, found["isolation"])
        return None

    def failed(self, instance: Instance) -> str:
        """Why the VM could not be started; "" when it wasn't tried, or is still under way, or worked."""
        launcher = self._launchers.get(instance.id)
        if launcher is None or launcher.poll() in {None, 0}:
            return ""
        return (self.root(instance) / "launch.log").read_text(encoding="utf-8", errors="replace") or "no vm.pid"

    def alive(self, process: Process) -> bool:
        """Whether that very process lives."""
        self._reap()
        return vminit.start_time(process.pid) == process.start

    def kill(self, instance: Instance) -> bool:
        """One round of killing the VM and all in it; True when nothing of it is left."""
        launcher = self._launchers.get(instance.id)
        if launcher is not None and launcher.poll() is None:
            return False
        process = instance.process or self.process(instance)
        if process is None:
            return True
        if not self.alive(process):
            return process.isolation != "reaper" or not _kill_strays(self.root(instance))
        if process.isolation == "reaper" and vminit.kill_below(process.pid):
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        return False

    def discard(self, instance: Instance) -> None:
        """Remove the VM's disk, all but its serial log."""
        self._launchers.pop(instance.id, None)
        root = self.root(instance)
        gone = root.with_suffix(_GONE)
        with contextlib.suppress(OSError):
            (root / "serial.log").rename(root.with_suffix(".serial.log"))
            root.rename(gone)
            threading.Thread(target=shutil.rmtree, args=(gone,), kwargs={"ignore_errors": True}).start()

    def serial(self, instance: Instance) -> str:
        """What the VM wrote to its serial port so far."""
        try:
            return (self.root(instance) / "serial.log").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""

    @cached_property
    def _path(self) -> str:
        """Where VMs find programs after their own."""
        return ":".join(filter(None, (_python_folder(), _SYSTEM_PATH)))

    def _reap(self) -> None:
        """Collect the launchers that did their work; the ones that failed stay known."""
        for identity in [each for each, launcher in self._launchers.items() if launcher.poll() == 0]:
            del self._launchers[identity]

    def _lay_out(self, root: Path, instance: Instance, gpus: tuple[smi.Gpu, ...]) -> None:
        """The VM's folders, programs and, last, vm.json; once it is there, nothing is touched again."""
        if (root / "vm.json").exists():
            return
        programs, home, temporary = root / "bin", root / "home", root / "tmp"
        for folder in (programs, home, temporary):
            folder.mkdir(parents=True, exist_ok=True)
        if gpus:
            _program(programs / "nvidia-smi", smi.script(gpus))
        for name in ("poweroff", "shutdown", "halt", "reboot"):
            _program(programs / name, _POWER_OFF.format(folder=root))
        script = instance.metadata.get("startup-script")
        if script is not None:
            _program(root / "startup-script", script)
        env = {
            "PATH": f"{programs}:{self._path}",
            "HOME": str(home),
            "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "GCE_METADATA_HOST": f"{HOST}:{instance.port}",
        }
        description = {
            "script": None if script is None else str(root / "startup-script"),
            "env": env,
            "cwd": str(home),
            "log": str(root / "serial.log"),
            "isolation": self._isolation,
        }
        draft = root / "vm.json.new"
        draft.write_text(json.dumps(description), encoding="utf-8")
        draft.rename(root / "vm.json")


def _program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _kill_strays(root: Path) -> bool:
    """Kill what outlived the VM's first process (only a reaper leaves any); whether something did.

    They are known by their HOME, which only processes of this VM have.
    """
    marker = b"HOME=" + os.fsencode(root / "home")
    found = False
    for pid in vminit.processes():
        with contextlib.suppress(OSError):
            if marker in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and vminit.start_time(pid):
                os.kill(pid, signal.SIGKILL)
                found = True
    return found


def _python_folder() -> str:
    """ "" when the system's python3 will do, else the folder of the interpreter that runs this."""
    system = shutil.which("python3", path=_SYSTEM_PATH)
    if system is not None:
        check = f"import sys; sys.exit(sys.version_info < {PYTHON_MIN})"
        if subprocess.run([system, "-I", "-S", "-c", check], check=False, env={}).returncode == 0:
            return ""
    base: str = getattr(sys, "_base_executable", sys.executable)
    return str(Path(base).resolve().parent)
