"""The gcp lane: one create at a time, told in the walk's words; reads and deletes what it created."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from widelane.config import GcpSettings
from widelane.errors import ConfigError, LaneAuthError, LaneUnknownError
from widelane.lanes.gcp.bodies import OURS, insert_body, request_id
from widelane.lanes.gcp.classify import classify
from widelane.lanes.gcp.client import LOGIN, CallError, Compute, Document, is_loopback
from widelane.lanes.gcp.quota import snapshot
from widelane.lanes.gcp.standing import failed, gone, is_ours, machine, queues, stands, still_may_come
from widelane.lanes.gcp.startup import startup
from widelane.lanes.protocol import Launch, Machine, MachineState, Pending, Progress
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.clock import Clock
from widelane.models.quota import QuotaSnapshot
from widelane.store import is_at_hand

T = TypeVar("T")
_READ_PAUSES = (0.2, 0.8)
_PREEMPTION = "compute.instances.preempted"


class GcpLane:
    """Compute Engine in one project. Safe to share between threads."""

    def __init__(
        self, settings: GcpSettings, clock: Clock, zones: tuple[str, ...] = (), *, credentials: object | None = None
    ) -> None:
        """`zones`: where creates of ours may be under way. `credentials`: in place of the environment's."""
        self._settings = settings
        self._clock = clock
        self._zones = zones
        self._compute = Compute(settings.project, settings.endpoint, credentials)
        self._pause = threading.Event()

    @property
    def name(self) -> str:
        """As in the policy's lane order."""
        return "gcp"

    @property
    def clock(self) -> Clock:
        """The clock of the cloud that this lane talks to."""
        return self._clock

    @property
    def poll_seconds(self) -> float:
        """Reads are cheap, and a machine takes half a minute to come."""
        return 3.0

    def close(self) -> None:
        """Close the connections."""
        self._compute.close()

    def check(self, store_url: str) -> None:
        """Raise `ConfigError` or `LaneAuthError` when a create could not work."""
        if not self._settings.project:
            raise ConfigError(
                "the gcp lane has no project",
                hint="set project in [lanes.gcp] of widelane.toml (`widelane init` writes one), or give --sim SCENARIO",
            )
        if self._out_of_reach(store_url):
            raise ConfigError(
                f"machines on Google Cloud can't reach the store {store_url}", hint=self._way_to_a_store()
            )
        self._compute.connect()

    def create(self, launch: Launch) -> Progress:
        """Send the create once. A Failure with `outcome_known` False may have taken effect."""
        if self._out_of_reach(launch.store_url):
            return Failure(
                outcome=Outcome.CONFIG,
                scope=Scope.LANE,
                code="STORE_UNREACHABLE",
                message=f"a machine on Google Cloud can't reach {launch.store_url}",
                hint=self._way_to_a_store(),
            )
        body = insert_body(launch, self._settings, startup())
        try:
            operation = self._compute.insert(launch.zone, body, request_id(launch))
        except CallError as error:
            return self._adopted(launch, classify(error.answer))
        return self._follow(launch, operation)

    def poll(self, launch: Launch, operation: str) -> Progress:
        """How an accepted create stands now; one to three reads, no waiting. "" follows the instance alone."""
        found = self._read(lambda: self._compute.operation(launch.zone, operation)) if operation else None
        if found is not None:
            return self._follow(launch, found)
        instance = self._instance(launch.zone, launch.name)
        if instance is not None:
            return self._own(launch, machine(instance), operation, done=True)
        if not operation:
            return gone(launch, self.preempted(launch.name, launch.zone))
        return Failure(
            outcome=Outcome.TRANSIENT,
            scope=Scope.INSTANCE,
            code="OPERATION_UNKNOWN",
            message=f"the service knows neither operation {operation} nor instance {launch.name}",
            outcome_known=False,
        )

    def find(self, name: str, zone: str) -> Machine | None:
        """The machine of that name, None when the service says that there is none."""
        instance = self._instance(zone, name)
        if instance is None:
            return None
        found = machine(instance)
        if found.state is not MachineState.RUNNING:
            return found
        return machine(instance, self._progress(zone, name))

    def delete(self, name: str, zone: str) -> None:
        """Ask for deletion; absence is success. Also cancels a queued request."""
        self._read(lambda: self._compute.delete(zone, name))

    def machines(self) -> tuple[Machine, ...]:
        """Every machine with our label, in every zone, creates under way included."""
        listed = self._read(lambda: self._compute.instances(f"labels.{OURS}=1")) or []
        found = {(entry.zone, entry.name): entry for entry in map(machine, listed)}
        for zone in self._zones:
            for name in self._under_way(zone):
                instance = None if (zone, name) in found else self._instance(zone, name)
                if instance is not None and instance.get("labels", {}).get(OURS) == "1":
                    found[zone, name] = machine(instance)
        return tuple(found[key] for key in sorted(found))

    def preempted(self, name: str, zone: str) -> bool:
        """Whether the service took the machine away."""
        listed = self._read(lambda: self._compute.operations(zone, f'operationType="{_PREEMPTION}"')) or []
        return any(entry.get("operationType") == _PREEMPTION and _target(entry) == name for entry in listed)

    def quotas(self, regions: tuple[str, ...]) -> QuotaSnapshot:
        """One read of each region and one of the project."""
        return snapshot(
            self._settings.project,
            self._clock.now(),
            {region: self._quota_document(partial(self._compute.region, region)) for region in regions},
            self._quota_document(self._compute.project_document),
        )

    def _follow(self, launch: Launch, operation: Document) -> Progress:
        """What an operation says, and the instance where the operation alone doesn't tell."""
        name = str(operation.get("name", ""))
        if operation.get("error"):
            return self._adopted(launch, failed(launch, operation))
        done = operation.get("status") == "DONE"
        if not done and not queues(launch):
            return Pending(name, queued=False)
        instance = self._instance(launch.zone, launch.name)
        if instance is not None:
            return self._own(launch, machine(instance), name, done=done)
        if still_may_come(operation, self._clock.now()):
            return Pending(name, queued=False)
        again = self._read(lambda: self._compute.operation(launch.zone, name))
        if again is not None and again.get("error"):
            return failed(launch, again)
        return gone(launch, self.preempted(launch.name, launch.zone))

    def _adopted(self, launch: Launch, failure: Failure) -> Progress:
        """On a conflict of names, our own machine if it is ours; any other is left alone."""
        if failure.outcome is not Outcome.CONFLICT:
            return failure
        try:
            instance = self._instance(launch.zone, launch.name)
        except LaneUnknownError:
            return failure.model_copy(update={"outcome": Outcome.TRANSIENT, "outcome_known": False})
        if instance is None:
            return failure
        found = machine(instance)
        return stands(launch, found, "", done=True) if is_ours(launch, found) else _not_ours(failure, found)

    def _own(self, launch: Launch, found: Machine, operation: str, *, done: bool) -> Progress:
        if is_ours(launch, found):
            return stands(launch, found, operation, done=done)
        conflict = Failure(outcome=Outcome.CONFLICT, scope=Scope.INSTANCE, code="NOT_OURS", message="")
        return _not_ours(conflict, found)

    def _instance(self, zone: str, name: str) -> Document | None:
        return self._read(lambda: self._compute.instance(zone, name))

    def _progress(self, zone: str, name: str) -> str:
        try:
            document = self._compute.guest_attributes(zone, name, "widelane/progress")
        except CallError:
            return ""
        items: list[dict[str, str]] = document.get("queryValue", {}).get("items", [])
        return items[0].get("value", "") if items else str(document.get("variableValue", ""))

    def _under_way(self, zone: str) -> list[str]:
        listed = self._read(lambda: self._compute.operations(zone, 'operationType="insert" AND status!="DONE"')) or []
        return [
            _target(entry)
            for entry in listed
            if entry.get("operationType") == "insert" and entry.get("status") != "DONE"
        ]

    def _quota_document(self, call: Callable[[], Document]) -> Document | None:
        """None when the answer can't be had: an unknown quota neither admits nor denies."""
        try:
            return self._read(call)
        except LaneUnknownError:
            return None
        except LaneAuthError as error:
            cause = error.__cause__
            # Who may create machines may still be forbidden to read quotas.
            if isinstance(cause, CallError) and cause.answer.status == 403:
                return None
            raise

    def _read(self, call: Callable[[], T]) -> T | None:
        """Call, again after a passing failure; None when what it names isn't there."""
        for pause in (*_READ_PAUSES, None):
            try:
                return call()
            except CallError as error:
                if _absent(error):
                    return None
                failure = classify(error.answer)
                if failure.outcome is Outcome.PERMISSION:
                    raise LaneAuthError("gcp", error.message, hint=failure.hint or f"run {LOGIN}") from error
                if failure.outcome is not Outcome.TRANSIENT or pause is None:
                    raise LaneUnknownError("gcp", f"{failure.code}: {failure.message}") from error
            self._pause.wait(pause)
        raise AssertionError("the last try either returns or raises")

    def _out_of_reach(self, store_url: str) -> bool:
        return is_at_hand(store_url) and not is_loopback(self._settings.endpoint)

    def _way_to_a_store(self) -> str:
        bucket = self._settings.bucket
        if bucket:
            return f"leave the store out of the plan: the bucket of [lanes.gcp] is then used, gs://{bucket}"
        return "set bucket in [lanes.gcp]: the store becomes gs://BUCKET"


def _absent(error: CallError) -> bool:
    """Whether the instance or operation itself isn't there (as against a zone, a project or an API)."""
    named = re.search(r"/(instances|operations)/[^/']+' was not found", error.answer.text)
    return error.answer.status == 404 and named is not None


def _not_ours(failure: Failure, found: Machine) -> Failure:
    owner = f"attempt {found.attempt_id}" if found.attempt_id else "somebody else"
    return failure.model_copy(update={"message": f"{found.name} in {found.zone} belongs to {owner}"})


def _target(operation: dict[str, Any]) -> str:
    return str(operation.get("targetLink", "")).rpartition("/")[2]
