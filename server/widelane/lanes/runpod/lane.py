"""The runpod lane: one create at a time, told in the walk's words; reads and deletes what it created.

The service has no request id and lists what it made a little late. Both are made up for: an attempt's create is sent at
most once, by a mark in the store, and a pod that shows up after its create was given up finds no work (`claims`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from widelane.config import RunpodSettings
from widelane.errors import ConfigError, LaneAuthError, LaneUnknownError, WidelaneError
from widelane.lanes.protocol import Launch, Machine, Pending, Progress
from widelane.lanes.runpod.bodies import pod_order, unfit_text
from widelane.lanes.runpod.claims import mark_sent, withdraw
from widelane.lanes.runpod.classify import classify
from widelane.lanes.runpod.client import PUBLIC, CallError, Pods, is_loopback
from widelane.lanes.runpod.pods import ATTEMPT, Pod, PodStatus
from widelane.lanes.runpod.rest2 import Rest2
from widelane.lanes.runpod.sdk import Sdk
from widelane.lanes.runpod.standing import LANE, chosen, is_marked, machine, stands, trouble_of
from widelane.lanes.runpod.startup import startup
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.clock import Clock
from widelane.models.plan import ProvisioningModel
from widelane.models.quota import QuotaSnapshot
from widelane.models.room import LaneRoom
from widelane.store import Store, is_at_hand, open_store

T = TypeVar("T")
_WIDEST = 8
"""No more GPUs are in one machine; walks go down from there."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. `young`: how long a pod may be missing from reads and still come."""

    poll: float = 10.0
    write: float = 60.0
    """Most that a create or a deletion may take to be answered."""
    young: float = 60.0
    gone: float = 600.0
    """When a pod that began its work and is in no read is taken for gone."""
    read_pauses: tuple[float, ...] = (1.0, 4.0)
    longest_wait: float = 60.0
    """Most that is waited for in one go when the service asks to be left alone."""


ON_THIS_HOST = Patience(poll=0.25, young=2.0, gone=20.0, read_pauses=(0.05, 0.2), longest_wait=1.0)
"""For a service on this host: it answers at once."""


class RunpodLane:
    """One account at RunPod. Safe to share between threads."""

    def __init__(
        self, settings: RunpodSettings, clock: Clock, env: Mapping[str, str], patience: Patience | None = None
    ) -> None:
        """`env` has the key, in the variable that the settings name."""
        self._settings = settings
        self._clock = clock
        local = is_loopback(settings.endpoint)
        self._patience = patience or (ON_THIS_HOST if local else Patience())
        key = env.get(settings.key_env, "")
        transport = Sdk if settings.transport == "sdk" else Rest2
        self._pods: Pods | None = None
        if key:
            self._pods = transport(settings.endpoint or PUBLIC, key, self._patience.write)
        self._pause = threading.Event()
        self._made: dict[str, tuple[str, float]] = {}
        """Pods that this object made, by name: id, and when."""
        self._unsure: dict[str, tuple[Launch, float]] = {}
        """Creates of this object that nobody knows the outcome of, and when they were sent."""

    @property
    def name(self) -> str:
        """As in the policy's lane order."""
        return LANE

    @property
    def clock(self) -> Clock:
        """The clock of the service: this machine's."""
        return self._clock

    @property
    def poll_seconds(self) -> float:
        """A pod takes minutes to come, and every question lists the account."""
        return self._patience.poll

    def close(self) -> None:
        """Close the connections."""
        if self._pods is not None:
            self._pods.close()

    def check(self, store_url: str) -> None:
        """Raise `ConfigError` or `LaneAuthError` when a create could not work. Calls nothing."""
        if self._out_of_reach(store_url):
            raise ConfigError(
                f"pods at RunPod can't reach the store {store_url}",
                hint="set `store` to one that they can, or take [lanes.runpod] out",
            )
        self._api().connect()

    def create(self, launch: Launch) -> Progress:
        """Send the create at most once in an attempt's life; a repeat looks for what the first one made."""
        refused = self._refused(launch)
        if refused is not None:
            return refused
        found = self._named(launch.name)
        if found:
            return stands(launch, chosen(launch, found))
        store = open_store(launch.store_url)
        full = self._full(launch)
        if full is not None:
            return full
        sent_at = mark_sent(store, launch, self._clock.now())
        if sent_at is not None:
            return self._missing(store, launch, "", sent_at)
        try:
            pod_id = self._send(launch)
        except CallError as error:
            return self._not_made(store, launch, error)
        self._made[launch.name] = (pod_id, self._clock.elapsed())
        return Pending(pod_id, queued=False)

    def poll(self, launch: Launch, operation: str) -> Progress:
        """How a pod that was made stands now; `operation` is its id."""
        pod = self._read(lambda: self._api().get(operation)) if operation else None
        if pod is not None and pod.status is not PodStatus.TERMINATED:
            self._seen(launch.name)
            return stands(launch, pod)
        found = self._named(launch.name)
        if found:
            return stands(launch, chosen(launch, found))
        store = open_store(launch.store_url)
        return self._missing(store, launch, operation, mark_sent(store, launch, self._clock.now()))

    def find(self, name: str, zone: str) -> Machine | None:
        """The pod of that name, None when the service says that there is none.

        Raises:
            LaneUnknownError: this object made it so lately that it may not show yet.
        """
        pod = self._find(name)
        return None if pod is None else machine(pod, self._progress(pod))

    def delete(self, name: str, zone: str) -> None:
        """Ask for deletion of every pod of ours of that name; absence is success."""
        made = self._made.get(name)
        ids = {pod.id for pod in self._named(name) if is_marked(pod)} | ({made[0]} if made else set[str]())
        for pod_id in sorted(ids):
            gone = self._read(partial(self._api().terminate, pod_id))
            if gone and made and made[0] == pod_id:
                self._made.pop(name, None)

    def machines(self) -> tuple[Machine, ...]:
        """Every pod with our label."""
        return tuple(machine(pod) for pod in sorted(self._all(), key=lambda pod: (pod.name, pod.id)) if is_marked(pod))

    def preempted(self, name: str, zone: str) -> bool:
        """Whether the service took an interruptible pod back."""
        pod = self._find(name)
        trouble = None if pod is None else trouble_of(pod)
        return trouble is not None and trouble.outcome is Outcome.PREEMPTED

    def quotas(self, regions: tuple[str, ...]) -> QuotaSnapshot:
        """RunPod shows none; a balance that doesn't suffice shows when it refuses."""
        return QuotaSnapshot(project="", taken_at=self._clock.now().isoformat(), regions=(), global_metrics=None)

    def room(self) -> LaneRoom:
        """Any width up to what pods have; calls nothing. What a type has at a width is asked when its turn comes."""
        return LaneRoom(gpus=_WIDEST)

    def _refused(self, launch: Launch) -> Failure | None:
        """What can't be asked for at all."""
        if self._out_of_reach(launch.store_url):
            text = f"a pod at RunPod can't reach {launch.store_url}"
            return _config("STORE_UNREACHABLE", Scope.LANE, text, "set `store` to one that pods can reach")
        if not is_at_hand(launch.store_url):
            text = f"a pod at RunPod has no credentials for {launch.store_url}, so none is rented for it"
            return _config("STORE_UNREACHABLE", Scope.LANE, text, "leave this work to the lanes before, or try later")
        if launch.rung.width < 1:
            return _config("NO_GPU", Scope.RUNG, "pods without GPU are not rented")
        if launch.rung.provisioning_model is not ProvisioningModel.STANDARD:
            return _config("NOT_SOLD", Scope.RUNG, f"RunPod isn't rented as {launch.rung.provisioning_model}")
        unfit = unfit_text(pod_order(launch, self._settings, startup(), self._clock.now()))
        if unfit:
            return _config("UNFIT_TEXT", Scope.LANE, f"a quote, backslash or line break in {unfit[:100]!r}")
        return None

    def _full(self, launch: Launch) -> Failure | None:
        """What the catalogue says against this type at this width; nothing was sent then."""
        gpu, width, cloud = launch.zone, launch.rung.width, self._settings.cloud
        try:
            offer = self._api().offer(gpu, width, cloud)
        except CallError as error:
            self._wait_as_asked(error)
            return classify(error.answer).model_copy(update={"outcome_known": True})
        if offer is None:
            return _config("NO_SUCH_TYPE", Scope.ZONE, f"RunPod's {cloud} cloud has no {gpu}")
        if offer.most is not None and offer.most < width:
            return _no_stock("TOO_WIDE", f"a pod has at most {offer.most} x {gpu} in the {cloud} cloud, never {width}")
        if offer.in_stock is False:
            return _no_stock("CATALOG_NONE", f"the catalogue has no {width} x {gpu} in the {cloud} cloud now")
        return None

    def _send(self, launch: Launch) -> str:
        return self._api().create(pod_order(launch, self._settings, startup(), self._clock.now()))

    def _not_made(self, store: Store, launch: Launch, error: CallError) -> Progress:
        """A create that failed. One that says no for certain is made certain; else it is looked for by name later."""
        failure = classify(error.answer)
        self._wait_as_asked(error)
        if not failure.outcome_known:
            self._unsure[launch.name] = (launch, self._clock.elapsed())
        elif not withdraw(store, launch):
            return failure.model_copy(update={"outcome_known": False})
        return failure

    def _missing(self, store: Store, launch: Launch, operation: str, sent_at: datetime | None) -> Progress:
        """No read shows a pod of a create that was sent: too young, never made, or gone again."""
        age = float("inf") if sent_at is None else (self._clock.now() - sent_at).total_seconds()
        if store.exists(f"leases/{launch.attempt_id}/finished.json"):
            return _unseen("POD_GONE", f"the pod of {launch.name} has ended")
        if age < self._patience.young:
            return Pending(operation, queued=False)
        if withdraw(store, launch):
            return _unseen("POD_LOST", f"no pod {launch.name} is to be seen, and none will do this work")
        known = age >= self._patience.gone
        message = f"no pod {launch.name} is to be seen, and one began this work"
        return _unseen("POD_GONE", message).model_copy(update={"outcome_known": known})

    def _find(self, name: str) -> Pod | None:
        found = self._named(name)
        if found:
            return min(found, key=lambda pod: (not is_marked(pod), pod.status is not PodStatus.RUNNING, pod.created_at))
        made = self._made.get(name)
        if made is None:
            self._rule_out(name)
            return None
        pod = self._read(partial(self._api().get, made[0]))
        if pod is not None and pod.status is not PodStatus.TERMINATED:
            return pod
        if pod is None and self._clock.elapsed() - made[1] < self._patience.young:
            raise LaneUnknownError(LANE, f"pod {made[0]} was made just now and doesn't show yet")
        self._made.pop(name, None)
        return None

    def _rule_out(self, name: str) -> None:
        """After a create of unknown outcome: raise LaneUnknownError until no pod of it can do any work."""
        launch, sent_at = self._unsure.get(name, (None, 0.0))
        if launch is None:
            return
        if self._clock.elapsed() - sent_at < self._patience.young or not withdraw(open_store(launch.store_url), launch):
            raise LaneUnknownError(LANE, f"a create of {name} had no answer, and its pod may still show")
        self._unsure.pop(name, None)

    def _named(self, name: str) -> list[Pod]:
        found = [pod for pod in self._all() if pod.name == name]
        if found:
            self._seen(name)
        return found

    def _seen(self, name: str) -> None:
        """A pod that showed once is not late any more."""
        self._unsure.pop(name, None)
        if name in self._made:
            self._made[name] = (self._made[name][0], float("-inf"))

    def _all(self) -> list[Pod]:
        listed = self._read(lambda: self._api().listed()) or ()
        return [pod for pod in listed if pod.status is not PodStatus.TERMINATED]

    def _progress(self, pod: Pod) -> str:
        """What its host last wrote to the store; pods have no place of their own for it."""
        lease = pod.labels.get(ATTEMPT, "")
        if pod.status is not PodStatus.RUNNING or not is_marked(pod) or not lease or self._out_of_reach(pod.store_url):
            return ""
        try:
            return open_store(pod.store_url).get(f"leases/{lease}/progress.json").decode(errors="replace")
        except WidelaneError:
            return ""

    def _read(self, call: Callable[[], T]) -> T:
        """Call, again after a passing failure."""
        for pause in (*self._patience.read_pauses, None):
            try:
                return call()
            except CallError as error:
                failure = classify(error.answer)
                if failure.outcome is Outcome.PERMISSION:
                    raise self._no_login(error.message) from error
                if failure.outcome is not Outcome.TRANSIENT or pause is None:
                    raise LaneUnknownError(LANE, f"{failure.code}: {failure.message}") from error
                self._pause.wait(max(pause, min(error.answer.retry_seconds or 0.0, self._patience.longest_wait)))
        raise AssertionError("the last try either returns or raises")

    def _wait_as_asked(self, error: CallError) -> None:
        if error.answer.retry_seconds is not None:
            self._pause.wait(min(error.answer.retry_seconds, self._patience.longest_wait))

    def _api(self) -> Pods:
        if self._pods is None:
            raise self._no_login(f"the variable {self._settings.key_env} holds no API key")
        return self._pods

    def _no_login(self, message: str) -> LaneAuthError:
        return LaneAuthError(LANE, message, hint=f"export {self._settings.key_env}=KEY with a key of RunPod's console")

    def _out_of_reach(self, store_url: str) -> bool:
        return store_url.startswith("file:") and not is_loopback(self._settings.endpoint)


def _unseen(code: str, message: str) -> Failure:
    return Failure(outcome=Outcome.TRANSIENT, scope=Scope.INSTANCE, code=code, message=message)


def _no_stock(code: str, message: str) -> Failure:
    return Failure(outcome=Outcome.CAPACITY, scope=Scope.ZONE, code=code, message=message)


def _config(code: str, scope: Scope, message: str, hint: str = "") -> Failure:
    return Failure(outcome=Outcome.CONFIG, scope=scope, code=code, message=message, hint=hint)
