"""The slurm lane: a machine is a job on one node, told in the walk's words."""

from __future__ import annotations

import errno
import hashlib
import re
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from widelane.config import SlurmSettings
from widelane.config.timelimit import seconds_of
from widelane.errors import ConfigError, LaneUnknownError, NotFoundError, StoreError, WidelaneError
from widelane.lanes.protocol import Granted, Launch, Machine, MachineState, Pending, Progress
from widelane.lanes.slurm.classify import classify, rule
from widelane.lanes.slurm.cluster import Answer, Cluster, unconfirmed
from widelane.lanes.slurm.homeward import Homeward
from widelane.lanes.slurm.partition import Partition, minutes_of
from widelane.lanes.slurm.sight import Sight
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.clock import Clock
from widelane.models.quota import QuotaSnapshot
from widelane.models.room import LaneRoom
from widelane.store import is_at_hand, open_store
from widelane.store.depot import Depot, shipment
from widelane.transport import Host, RefusedError, UnfitError, UnreachedError

_CONFIRM_SECONDS = 120.0
"""How long a cancelled job may take to go before it is called out."""
_FOLDER_ERRORS = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOSPC, errno.EDQUOT, errno.ENAMETOOLONG}
)
"""What is wrong with the folder for work when it can't be written to."""
_ROUND = timedelta(minutes=10)


class SlurmLane:
    """One cluster and partition. Safe to share between threads."""

    def __init__(
        self, name: str, settings: SlurmSettings, host: Host, clock: Clock, home: Path, *, near: bool = False
    ) -> None:
        """`host` is the login host; `near`: it is this machine, so that questions cost little and stores are shared."""
        self._name = name
        self._settings = settings
        self._cluster = Cluster(name, settings, host)
        self._clock = clock
        self._home = Homeward(home / "lanes" / quote(name, safe=""))
        self._near = near
        self._lock = threading.Lock()
        self._looks: dict[str, int] = {}

    @property
    def name(self) -> str:
        """`slurm.NAME`."""
        return self._name

    @property
    def clock(self) -> Clock:
        """This machine's clock: deadlines are ours, not the cluster's."""
        return self._clock

    @property
    def poll_seconds(self) -> float:
        """Clusters ask their users not to poll often."""
        return 1.0 if self._near else 10.0

    def check(self, store_url: str) -> None:
        """Raise `ConfigError` or `LaneAuthError` when a create could not work. A cluster that is silent may yet."""
        self._seconds_allowed()
        self._check_options()
        try:
            self._check()
        except (UnfitError, RefusedError) as error:
            raise ConfigError(error.message, hint=error.hint or f"see [lanes.{self._name}]") from error
        except LaneUnknownError:
            return

    def create(self, launch: Launch) -> Progress:
        """Submit the job once: a second call, of any process, finds the first one's.

        Raises:
            UnreachedError: nothing was submitted.
            LaneAuthError, LaneUnknownError: as everywhere.
        """
        try:
            partition = self._first_look()
            refused = self._refusal(launch, partition)
            if refused is not None:
                return refused
            runner = _runner(launch)
            return self._submit(launch, partition, runner)
        except (ConfigError, NotFoundError, UnfitError) as error:
            return _misconfigured(error)
        except RefusedError as error:
            if error.errno not in _FOLDER_ERRORS:
                raise
            return _misconfigured(error)

    def poll(self, launch: Launch, operation: str) -> Progress:
        """How the job stands. A reason to wait is judged at the second look: the first can be SLURM's own start."""
        with self._lock:
            self._looks[launch.name] = looks = self._looks.get(launch.name, 0) + 1
        return self._stands(launch, self._look(launch.name), judged=looks > 1)

    def find(self, name: str, zone: str) -> Machine | None:
        """The machine of that name; absent once it was deleted and nothing of it can be at work.

        What it wrote since the last look is then in our store.
        """
        sight = self._look(name)
        machine = sight.machine(zone)
        if machine is None:
            self._clear_away(name, sight)
        return machine

    def delete(self, name: str, zone: str) -> None:
        """Cancel the job, whatever its state; its folder goes when nothing can be at work any more.

        Raises:
            LaneUnknownError: SLURM doesn't confirm it, or the job is still there long after it was cancelled.
        """
        sight = self._cluster.cancel(name)
        since = sight.folder.cancelled_seconds if sight.folder is not None else None
        if sight.live and since is not None and since > _CONFIRM_SECONDS:
            raise unconfirmed(self._name, sight.live, since)

    def machines(self) -> tuple[Machine, ...]:
        """Every job of ours that lives, and every folder."""
        found = (sight.machine(self._name) for sight in self._cluster.listing())
        return tuple(machine for machine in found if machine is not None)

    def preempted(self, name: str, zone: str) -> bool:
        """Whether SLURM gave the job's place to another one."""
        standing = self._cluster.look(name)[0].standing()
        return standing is not None and standing.state == "PREEMPTED"

    def quotas(self, regions: tuple[str, ...]) -> QuotaSnapshot:
        """A cluster's limits show only when a job meets them."""
        return QuotaSnapshot(project="", taken_at=self._clock.now().isoformat(), regions=(), global_metrics=None)

    def room(self) -> LaneRoom:
        """What the largest node of the partition holds, and how long a job may run."""
        try:
            partition = self._cluster.partition()
        except ConfigError:
            return LaneRoom()
        return LaneRoom(gpus=partition.gpus, seconds=self._limit(partition))

    def _first_look(self) -> Partition:
        """The partition, before anything is sent."""
        try:
            return self._cluster.partition()
        except UnfitError:
            raise
        except LaneUnknownError as error:
            raise UnreachedError(self._name, error.message, hint=error.hint) from error

    def _look(self, name: str) -> Sight:
        """What there is of a name, with what its own store has new brought home."""
        sight, answer = self._cluster.look(name, self._home.since(name))
        if answer.news is not None and sight.folder is not None:
            self._home.bring(name, sight.attempt, Depot(self._cluster.host, answer.depot), answer.news)
        return sight

    def _clear_away(self, name: str, sight: Sight) -> None:
        """What is left of a deleted machine goes after the look that brought its last words home."""
        if sight.folder is not None:
            self._cluster.remove(name)
        self._home.forget(name)

    def _submit(self, launch: Launch, partition: Partition, runner: bytes) -> Progress:
        intent = self._intent(launch)
        if not (self._near and is_at_hand(launch.store_url)):
            # Nodes can't reach a folder of this machine, and have no credentials for a bucket: the job gets a store of
            # its own, and we keep in step.
            store = open_store(launch.store_url)
            keys = shipment(store, launch.spec_key, launch.runner_sha256)
            claimed = self._cluster.claim(launch.name, launch.attempt_id)
            if claimed.held or claimed.sight is None or claimed.sight.attempt != launch.attempt_id:
                return self._submitted(launch, claimed)
            if not claimed.sight.jobs:
                self._home.note(launch)
                Depot(self._cluster.host, claimed.depot).fill(store, keys)
            intent["store"] = ""
        options = self._options(launch, partition)
        asked = {"name": launch.name, "attempt": launch.attempt_id, "intent": intent, "options": options}
        return self._submitted(launch, self._cluster.submit(asked, runner))

    def _check(self) -> None:
        section = f"[lanes.{self._name}]"
        told = self._cluster.check()
        if told["missing"]:
            missing = ", ".join(told["missing"])
            raise ConfigError(
                f"{self._name}: no {missing} on {self._settings.host}", hint=f"set host in {section} to a login host"
            )
        if told["trouble"]:
            raise ConfigError(f"{self._name}: {told['trouble']}", hint=f"set workdir in {section} to a shared folder")
        self._cluster.partition()

    def _seconds_allowed(self) -> int | None:
        try:
            return seconds_of(self._settings.time_limit)
        except ValueError as error:
            section = f"[lanes.{self._name}]"
            raise ConfigError(f"{self._name}: {error}", hint=f"set time_limit in {section} as D-HH:MM:SS") from None

    def _check_options(self) -> None:
        wrong = next((option for option in self._settings.options if not option.startswith("-")), None)
        if wrong is not None:
            raise ConfigError(
                f"{self._name}: {wrong!r} is no option of sbatch",
                hint=f'write options in [lanes.{self._name}] as ["--name=value"]',
            )

    def _limit(self, partition: Partition) -> int | None:
        limits = [seconds for seconds in (self._seconds_allowed(), partition.seconds) if seconds is not None]
        return min(limits, default=None)

    def _refusal(self, launch: Launch, partition: Partition) -> Failure | None:
        """What SLURM would refuse, or, worse, would let wait for ever."""
        width, limit = launch.rung.width, self._limit(partition)
        if width > partition.gpus:
            message = f"no node of the partition has {width} GPUs; the largest has {partition.gpus}"
            return Failure(outcome=Outcome.CONFIG, scope=Scope.RUNG, code="TOO_WIDE", message=message)
        if limit is not None and launch.least_seconds > limit:
            needed, allowed = launch.least_seconds / 3600, limit / 3600
            message = f"the work takes {needed:.2g} h at width {width}; a job may run {allowed:.2g} h"
            return Failure(outcome=Outcome.CONFIG, scope=Scope.RUNG, code="TIME_LIMIT", message=message)
        return None

    def _options(self, launch: Launch, partition: Partition) -> list[str]:
        """Options of sbatch; the section's own come last and win."""
        width, limit, share = launch.rung.width, self._limit(partition), partition.share(launch.rung.width)
        seconds = launch.fence_seconds if limit is None else min(launch.fence_seconds, limit)
        options = [
            "--nodes=1",
            "--ntasks=1",
            f"--cpus-per-task={share.cpus}",
            f"--time={minutes_of(seconds)}",
            "--no-requeue",
            "--open-mode=append",
            f"--comment={_comment(launch)}",
        ]
        if share.memory_mib:
            options.append(f"--mem={share.memory_mib}M")
        if width:
            kind = f"gpu:{self._settings.gpu}" if self._settings.gpu else "gpu"
            options.append(f"--gres={kind}:{width}")
        if self._settings.partition:
            options.append(f"--partition={self._settings.partition}")
        if self._settings.account:
            options.append(f"--account={self._settings.account}")
        return [*options, *self._settings.options]

    def _intent(self, launch: Launch) -> dict[str, Any]:
        return {
            "attempt_id": launch.attempt_id,
            "machine_type": launch.rung.machine_type,
            "store": launch.store_url,
            "spec": launch.spec_key,
            "runner_sha256": launch.runner_sha256,
            "created_at": self._clock.now().isoformat(),
            "labels": {**launch.labels, **_labels(launch)},
        }

    def _submitted(self, launch: Launch, answer: Answer) -> Progress:
        if answer.held:
            return Pending("", queued=False)
        if answer.refused is not None:
            if answer.command == "sbatch":
                return classify(answer.refused)
            raise LaneUnknownError(self._name, f"{answer.command}: {answer.refused.words}")
        assert answer.sight is not None, "an answer without refusal has looked"
        return self._stands(launch, answer.sight, judged=False)

    def _stands(self, launch: Launch, sight: Sight, *, judged: bool) -> Progress:
        machine = sight.machine(launch.zone)
        if machine is None:
            return Failure(
                outcome=Outcome.TRANSIENT,
                scope=Scope.INSTANCE,
                code="NO_JOB",
                message=f"there is neither a job nor a folder {launch.name}",
            )
        if machine.attempt_id != launch.attempt_id:
            return Failure(
                outcome=Outcome.CONFLICT,
                scope=Scope.INSTANCE,
                code="NAME_TAKEN",
                message=f"{launch.name} belongs to attempt {machine.attempt_id}",
            )
        if machine.state is MachineState.QUEUED:
            return self._waits(sight, machine, judged=judged)
        if machine.state is MachineState.STARTING:
            return Pending(machine.id, queued=False)
        if sight.ran or machine.state is MachineState.RUNNING:
            return Granted(machine)
        return _vanished(sight)

    def _waits(self, sight: Sight, machine: Machine, *, judged: bool) -> Progress:
        standing, job = sight.standing(), sight.job
        assert standing is not None, "a queued machine has a job"
        assert job is not None, "a queued machine has a job"
        if judged and not rule(standing).waits:
            return classify(standing)
        expected = _about(job.start)
        reason = "its turn" if standing.word in ("", "None") else standing.word
        hint = f"waits for {reason}" + (f", expected to start about {expected}" if expected else "")
        return Pending(machine.id, queued=True, hint=hint)


def _misconfigured(error: WidelaneError) -> Failure:
    return Failure(outcome=Outcome.CONFIG, scope=Scope.LANE, code=error.code, message=error.message, hint=error.hint)


def _vanished(sight: Sight) -> Failure:
    """The end of a job that never had a node: cancelled by somebody while it waited, unless SLURM says otherwise."""
    end = sight.end()
    if end.code != "CANCELLED":
        return end
    return end.model_copy(update={"outcome": Outcome.QUEUE_VANISHED, "scope": Scope.RUNG, "code": "QUEUE_VANISHED"})


def _runner(launch: Launch) -> bytes:
    key = f"runners/{launch.runner_sha256}.pyz"
    data = open_store(launch.store_url).get(key)
    if hashlib.sha256(data).hexdigest() != launch.runner_sha256:
        raise StoreError(f"{launch.store_url}: {key} isn't what its name says")
    return data


def _labels(launch: Launch) -> dict[str, str]:
    return {
        "widelane": "1",
        "widelane-run": launch.run_id,
        "widelane-dispatch": launch.dispatch_id,
        "widelane-attempt": launch.attempt_id,
        "widelane-key": launch.dispatch_key,
        "widelane-type": launch.rung.machine_type,
    }


def _comment(launch: Launch) -> str:
    """Our mark on the job, which any later process of ours reads back."""
    return ",".join(f"{key}={re.sub(r'[^A-Za-z0-9._:-]', '_', value)}" for key, value in _labels(launch).items())


def _about(start: str) -> str:
    """An estimate without more precision than it has; "" when there is none."""
    try:
        when = datetime.fromisoformat(start)
    except ValueError:
        return ""
    late = timedelta(minutes=when.minute % 10, seconds=when.second, microseconds=when.microsecond)
    return (when - late + (_ROUND if late else timedelta())).isoformat(" ", "minutes")
