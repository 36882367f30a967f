"""The local lane: a machine is a folder and a detached process on this host.

Nothing here remembers: what was started, and whether it lives, is read from the folder and from /proc, so that any
process of this user can adopt or end what another one started.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from widelane.config import make_home
from widelane.errors import ConfigError, LaneUnknownError, WidelaneError
from widelane.lanes.local.folder import MARK, Folder
from widelane.lanes.protocol import Granted, Launch, Machine, MachineState, Pending, Progress
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.clock import Clock
from widelane.models.quota import QuotaSnapshot
from widelane.runner.host.attempt import read_record, write_record
from widelane.store import open_store

ZONE = "local"
_START_SECONDS = 5.0
_LOOK_SECONDS = 0.01
_IN_BACKGROUND = 'exec "$@" &'
"""The shell ends at once and leaves the keeper to init: the starter keeps no child."""


class LocalLane:
    """Machines under `home`/local. Needs /proc."""

    def __init__(self, home: Path, clock: Clock, env: Mapping[str, str], *, grace_seconds: float = 10.0) -> None:
        """`env` is what the work inherits; `grace_seconds` what a deletion leaves it to end in order."""
        self._root = home.absolute() / "local"
        self._clock = clock
        self._env = env
        self._grace_seconds = grace_seconds

    @property
    def name(self) -> str:
        """As in the policy's lane order."""
        return "local"

    @property
    def clock(self) -> Clock:
        """This machine's clock."""
        return self._clock

    @property
    def poll_seconds(self) -> float:
        """Looking costs a few file reads."""
        return 0.25

    def check(self, store_url: str) -> None:
        """Raise `ConfigError` when nothing could be started here."""
        if not Path("/proc/self/stat").exists():
            raise ConfigError("the local lane needs /proc: this system has none")
        try:
            make_home(self._root.parent)
            self._root.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self._root} can't be made: {error}", hint="set WIDELANE_HOME") from error

    def create(self, launch: Launch) -> Progress:
        """Start it once: a second call, of any process, finds the first one's."""
        folder = self._folder(launch.name)
        try:
            folder.path.mkdir(parents=True, exist_ok=True)
            with folder.claimed() as lock:
                if lock is not None and not folder.deleting.exists() and read_record(folder.launch) is None:
                    write_record(folder.launch, _intent(launch, self._clock))
                known = read_record(folder.launch)
                if known is None:
                    # Somebody else is creating it at this moment, or deleting it.
                    return Pending("", queued=False)
                if lock is not None and _is_startable(folder, known, launch):
                    self._start(folder, launch, lock)
        except (OSError, WidelaneError, subprocess.SubprocessError) as error:
            return _not_started(error)
        return self.poll(launch, "")

    def poll(self, launch: Launch, operation: str) -> Progress:
        """How it stands; `operation` is not used here."""
        found = self.find(launch.name, launch.zone)
        if found is None:
            return Failure(
                outcome=Outcome.TRANSIENT,
                scope=Scope.INSTANCE,
                code="NOT_STARTED",
                message=f"there is no local machine {launch.name}",
                outcome_known=False,
            )
        if found.attempt_id != launch.attempt_id:
            return Failure(
                outcome=Outcome.CONFLICT,
                scope=Scope.INSTANCE,
                code="NAME_TAKEN",
                message=f"{launch.name} belongs to attempt {found.attempt_id}",
            )
        return Pending("", queued=False) if found.state is MachineState.STARTING else Granted(found)

    def find(self, name: str, zone: str) -> Machine | None:
        """The machine of that name. One whose process ended is stopped."""
        folder = self._folder(name)
        try:
            known = read_record(folder.launch)
            return None if known is None else _machine(folder, known)
        except (OSError, ValueError, TypeError) as error:
            raise LaneUnknownError("local", f"{folder.path}: {error}") from error

    def delete(self, name: str, zone: str) -> None:
        """End every process of the machine and take its folder away.

        Raises:
            LaneUnknownError: something of it can't be ended.
        """
        folder = self._folder(name)
        if not folder.path.exists():
            return
        try:
            folder.deleting.touch()
            if not folder.end_and_remove(self._grace_seconds):
                raise LaneUnknownError("local", f"{name}: processes {folder.members()} can't be ended")
        except FileNotFoundError:
            return
        except OSError as error:
            raise LaneUnknownError("local", f"{folder.path}: {error}") from error

    def machines(self) -> tuple[Machine, ...]:
        """Every machine that has a folder."""
        if not self._root.is_dir():
            return ()
        names = sorted(entry.name for entry in self._root.iterdir() if entry.is_dir() and entry.name[0] != ".")
        return tuple(found for name in names if (found := self.find(name, ZONE)) is not None)

    def preempted(self, name: str, zone: str) -> bool:
        """Nobody takes this host away."""
        return False

    def quotas(self, regions: tuple[str, ...]) -> QuotaSnapshot:
        """There are none here."""
        return QuotaSnapshot(project="", taken_at=self._clock.now().isoformat(), regions=(), global_metrics=None)

    def _folder(self, name: str) -> Folder:
        if not name or name != Path(name).name or name.startswith("."):
            raise ValueError(f"not the name of a machine: {name!r}")
        return Folder(self._root / name)

    def _start(self, folder: Folder, launch: Launch, lock: int) -> None:
        """Start the keeper with the lock in its hands and wait until it has recorded itself."""
        open_store(launch.store_url).get_to(f"runners/{launch.runner_sha256}.pyz", folder.runner, launch.runner_sha256)
        keep = folder.path / "keep.sh"
        keep.write_bytes((resources.files("widelane.lanes.local") / "keep.sh").read_bytes())
        runner = [sys.executable, str(folder.runner), "host", "--store", launch.store_url, "--spec", launch.spec_key]
        command = ["/bin/sh", str(keep), str(folder.path), *runner, "--root", str(folder.host)]
        with folder.log.open("ab") as log:
            subprocess.run(
                ["/bin/sh", "-c", _IN_BACKGROUND, "sh", *command],
                check=True,
                cwd=folder.path,
                env={**self._env, MARK: str(folder.path)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
                timeout=_START_SECONDS,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not folder.process.exists() and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)


def _intent(launch: Launch, clock: Clock) -> dict[str, Any]:
    rung = launch.rung
    return {
        "attempt_id": launch.attempt_id,
        "request_id": launch.request_id,
        "run_id": launch.run_id,
        "machine_type": rung.machine_type,
        "provisioning_model": rung.provisioning_model.value,
        "created_at": clock.now().isoformat(),
        "labels": {
            **launch.labels,
            "widelane": "1",
            "widelane-run": launch.run_id,
            "widelane-dispatch": launch.dispatch_id,
            "widelane-attempt": launch.attempt_id,
            "widelane-key": launch.dispatch_key,
        },
    }


def _is_startable(folder: Folder, known: Mapping[str, Any], launch: Launch) -> bool:
    """Whether this very attempt was intended and never begun."""
    return known.get("attempt_id") == launch.attempt_id and not folder.process.exists() and not folder.deleting.exists()


def _machine(folder: Folder, known: Mapping[str, Any]) -> Machine:
    return Machine(
        name=folder.path.name,
        zone=ZONE,
        id=str(known["request_id"]),
        state=_state(folder),
        machine_type=str(known["machine_type"]),
        provisioning_model=str(known["provisioning_model"]),
        attempt_id=str(known["attempt_id"]),
        labels=dict(known["labels"]),
        created_at=str(known["created_at"]),
        progress=_progress(folder),
    )


def _state(folder: Folder) -> MachineState:
    if folder.deleting.exists():
        return MachineState.STOPPING
    if folder.lives():
        return MachineState.RUNNING if folder.process.exists() else MachineState.STARTING
    return MachineState.STOPPED if folder.process.exists() else MachineState.STARTING


def _progress(folder: Folder) -> str:
    try:
        return json.dumps(json.loads((folder.host / "progress.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return ""


def _not_started(error: Exception) -> Failure:
    return Failure(
        outcome=Outcome.CONFIG,
        scope=Scope.LANE,
        code="NOT_STARTED",
        message=f"the runner could not be started here: {error}",
        body=f"{type(error).__name__}: {error}",
    )
