"""The ssh lane: a machine is a folder and a detached process on one host with GPUs.

What was started, and whether it lives, is read on the host. Here is only a note of each machine: which store its
results belong to.
"""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from widelane.config.settings import SshSettings
from widelane.errors import ConfigError, LaneUnknownError, NotFoundError, StoreError
from widelane.lanes.protocol import Granted, Launch, Machine, MachineState, Pending, Progress
from widelane.lanes.ssh.notes import Note, Notes
from widelane.lanes.ssh.refusals import no_room, not_started, taken_name, unfit, why_ended
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.clock import Clock
from widelane.models.quota import QuotaSnapshot
from widelane.models.room import LaneRoom
from widelane.store import Store, open_store
from widelane.store.depot import DEPOT, Depot, Errand, errand_of, shipment
from widelane.transport import Host, Program, RefusedError, Request, UnfitError, UnreachedError

FAR = Program(
    (
        *DEPOT,
        "widelane.runner.host.processes",
        "widelane.runner.host.attempt",
        "widelane.runner.host.devices",
        "widelane.lanes.ssh.far.folder",
        "widelane.lanes.ssh.far.keeper",
        "widelane.lanes.ssh.far.cards",
        "widelane.lanes.ssh.far.machine",
    )
)
_PATIENCE_SECONDS = 60.0


class SshLane:
    """Machines on one host. Every method asks it anew."""

    def __init__(
        self, name: str, settings: SshSettings, host: Host, clock: Clock, home: Path, *, grace_seconds: float = 15.0
    ) -> None:
        """`name` is `ssh.NAME`; `grace_seconds` what a deletion leaves work to end in order."""
        self._name = name
        self._settings = settings
        self._host = host
        self._clock = clock
        self._notes = Notes(home / "lanes" / quote(name, safe=""))
        self._grace_seconds = grace_seconds
        self._lock = threading.Lock()
        self._seen: dict[str, tuple[str, int]] = {}
        """By machine: its attempt, and how far its news are known."""
        self._errands: dict[str, Errand] = {}

    @property
    def name(self) -> str:
        """As in the policy's lane order, with the host's name behind it."""
        return self._name

    @property
    def clock(self) -> Clock:
        """This machine's clock."""
        return self._clock

    @property
    def poll_seconds(self) -> float:
        """A question starts one Python on the host."""
        return 1.0

    def room(self) -> LaneRoom:
        """As the configuration says; the host counts when it is asked for a machine."""
        return LaneRoom(gpus=self._settings.gpus)

    def check(self, store_url: str) -> None:
        """Raise `ConfigError` or `LaneAuthError` when nothing could be started there.

        A host that can't be reached just now passes: the walk comes to it later.
        """
        try:
            answer = self._call("check")
        except UnreachedError:
            return
        except (UnfitError, RefusedError) as error:
            raise ConfigError(error.message, hint=error.hint or f"see [lanes.{self._name}]") from error
        if not answer["proc"]:
            raise ConfigError(f"{self._name}: the host has no /proc", hint="a machine there must run Linux")

    def create(self, launch: Launch) -> Progress:
        """Claim the name and the GPUs, bring what the work needs, start it: each once, however often it is asked."""
        try:
            store = open_store(launch.store_url)
            keys = shipment(store, launch.spec_key, launch.runner_sha256)
            claimed = self._call("claim", name=launch.name, launch=self._intent(launch), keys=keys)
        except UnfitError as error:
            return unfit(error)
        except (RefusedError, ConfigError, NotFoundError, StoreError) as error:
            return not_started(error)
        try:
            return self._go_on(launch, claimed, store)
        except UnreachedError as error:
            # The claim is there, so it can't be said that nothing happened.
            raise LaneUnknownError(self._name, error.message, hint=error.hint) from error

    def poll(self, launch: Launch, operation: str) -> Progress:
        """How it stands; `operation` is not used here."""
        found = self.find(launch.name, launch.zone)
        if found is None:
            return Failure(
                outcome=Outcome.TRANSIENT,
                scope=Scope.INSTANCE,
                code="NOT_STARTED",
                message=f"{self._host.target} has no machine {launch.name}",
                outcome_known=False,
            )
        return self._progress(launch, found)

    def find(self, name: str, zone: str) -> Machine | None:
        """The machine of that name; what it wrote since the last look is then in our store."""
        answer = self._look(name)
        return None if answer is None else self._machine(answer)

    def delete(self, name: str, zone: str) -> None:
        """End every process of the machine, bring home what it wrote, and take its folder away.

        Raises:
            StoreError: what it wrote can't be brought home, so it stays there.
            LaneUnknownError: something of it can't be ended, or the host can't be asked.
        """
        patience = _PATIENCE_SECONDS + self._grace_seconds
        ended = self._call("end", patience, name=name, grace_seconds=self._grace_seconds)
        if ended["left"]:
            raise LaneUnknownError(self._name, f"{name}: processes {ended['left']} can't be ended")
        if not ended["absent"]:
            self._look(name)
            if not self._call("remove", name=name)["removed"]:
                raise LaneUnknownError(self._name, f"{name}: its folder can't be removed yet")
        self._forget(name)

    def machines(self) -> tuple[Machine, ...]:
        """Every machine that has a folder on the host."""
        return tuple(self._machine(found) for found in self._call("every")["machines"])

    def preempted(self, name: str, zone: str) -> bool:
        """Nobody takes the host away."""
        return False

    def quotas(self, regions: tuple[str, ...]) -> QuotaSnapshot:
        """There are none here."""
        return QuotaSnapshot(project="", taken_at=self._clock.now().isoformat(), regions=(), global_metrics=None)

    def _go_on(self, launch: Launch, claimed: dict[str, Any], store: Store) -> Progress:
        found = claimed.get("machine")
        if found is not None and found["intent"]["attempt_id"] != launch.attempt_id:
            return taken_name(launch.name, found["intent"]["attempt_id"])
        answer = claimed
        if found is not None and found["state"] == MachineState.STARTING.value:
            self._notes.write(launch.name, _note(launch))
            try:
                Depot(self._host, claimed["depot"]).fill(store, claimed["missing"])
                answer = self._call("start", name=launch.name, attempt_id=launch.attempt_id)
            except (RefusedError, NotFoundError, StoreError) as error:
                return not_started(error)
        if "refused" in answer:
            return no_room(self._host.target, launch.rung.width, answer["refused"])
        # Without a machine it is being removed at this moment, or made by somebody else.
        machine = answer["machine"]
        return Pending("", queued=False) if machine is None else self._progress(launch, self._machine(machine))

    def _progress(self, launch: Launch, found: Machine) -> Progress:
        if found.attempt_id != launch.attempt_id:
            return taken_name(launch.name, found.attempt_id)
        return Pending("", queued=False) if found.state is MachineState.STARTING else Granted(found)

    def _look(self, name: str) -> dict[str, Any] | None:
        note = self._notes.read(name)
        attempt = note.attempt_id if note is not None else ""
        with self._lock:
            seen, since = self._seen.get(name, (attempt, 0))
        answer = self._call("look", name=name, since=since if seen == attempt else 0)
        machine: dict[str, Any] | None = answer["machine"]
        if machine is None:
            return None
        if note is not None and machine["intent"]["attempt_id"] == note.attempt_id:
            self._bring(note, Depot(self._host, answer["depot"]), answer["news"]["keys"])
            with self._lock:
                self._seen[name] = (attempt, int(answer["news"]["now"]))
        return machine

    def _bring(self, note: Note, depot: Depot, news: list[list[Any]]) -> None:
        if not news:
            return
        try:
            store = open_store(note.store_url)
            errand = self._errands.get(note.spec_key)
            if errand is None:
                errand = self._errands[note.spec_key] = errand_of(store, note.spec_key)
        except (ConfigError, NotFoundError) as error:
            raise StoreError(error.message, hint=error.hint) from error
        depot.bring(store, errand, news)

    def _forget(self, name: str) -> None:
        note = self._notes.read(name)
        with self._lock:
            self._seen.pop(name, None)
            if note is not None:
                self._errands.pop(note.spec_key, None)
        self._notes.remove(name)

    def _call(self, entry: str, silence: float = _PATIENCE_SECONDS, **asked: Any) -> dict[str, Any]:
        root = self._settings.workdir or "~/.widelane"
        return self._host.call(Request(FAR, entry, {"root": root, **asked}), silence)

    def _intent(self, launch: Launch) -> dict[str, Any]:
        rung = launch.rung
        return {
            "attempt_id": launch.attempt_id,
            "request_id": launch.request_id,
            "width": rung.width,
            "machine_type": rung.machine_type,
            "provisioning_model": rung.provisioning_model.value,
            "spec_key": launch.spec_key,
            "runner_sha256": launch.runner_sha256,
            "fence_seconds": launch.fence_seconds,
            "grace_seconds": self._grace_seconds,
            "labels": {
                **launch.labels,
                "widelane": "1",
                "widelane-run": launch.run_id,
                "widelane-dispatch": launch.dispatch_id,
                "widelane-attempt": launch.attempt_id,
                "widelane-key": launch.dispatch_key,
            },
        }

    def _machine(self, found: dict[str, Any]) -> Machine:
        intent = found["intent"]
        progress = found["progress"]
        return Machine(
            name=str(found["name"]),
            zone=self._name,
            id=str(intent["request_id"]),
            state=MachineState(found["state"]),
            machine_type=str(intent["machine_type"]),
            provisioning_model=str(intent["provisioning_model"]),
            attempt_id=str(intent["attempt_id"]),
            labels=dict(intent["labels"]),
            created_at=datetime.fromtimestamp(float(intent["created"]), UTC).isoformat(),
            progress="" if progress is None else json.dumps(progress),
            end=why_ended(found["ended"]),
        )


def _note(launch: Launch) -> Note:
    return Note(attempt_id=launch.attempt_id, store_url=launch.store_url, spec_key=launch.spec_key)
