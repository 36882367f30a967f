"""A lane whose service is a few lines of the test: finite stock, answers by the book, hosts that write real records.

It implements `lanes.protocol.Lane`. Time is its own: a pause advances it, and nothing sleeps.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from widelane.lanes.protocol import Granted, Launch, Machine, MachineState, Pending, Progress
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.quota import QuotaSnapshot
from widelane.store import Store

STOCKOUT = Failure(outcome=Outcome.CAPACITY, scope=Scope.ZONE, code="ZONE_RESOURCE_POOL_EXHAUSTED", message="no stock")
LOST_ANSWER = Failure(
    outcome=Outcome.TRANSIENT, scope=Scope.INSTANCE, code="ReadTimeout", message="no answer", outcome_known=False
)


class FakeClock:
    """Advances only when told."""

    rate = 1.0

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def elapsed(self) -> float:
        return self.seconds


@dataclass
class Host:
    """What a granted machine does, a step a question."""

    units: int | None = None
    """Units that get a record before it stops; None: all."""
    ends: str = "finished"
    """finished, preempted, shut-down (preempted, and the host said so), vanished, silent, running."""
    devices: int | None = None
    reason: str = "units_failed"
    """Of a host that ends with units left."""
    lasts: float = 0.0
    """Seconds from its first report to its end."""
    progress: Callable[[float], dict[str, Any]] | None = None
    """What it reports, by the seconds since its first report."""
    steps: int = 0
    began: float = 0.0


@dataclass
class ScriptedLane:
    """`answers` maps (machine type, model, zone) to what successive creates get; then `otherwise`."""

    store: Store
    clock: FakeClock = field(default_factory=FakeClock)
    name: str = "gcp"
    poll_seconds: float = 2.0
    answers: dict[tuple[str, str, str], list[Progress | str]] = field(default_factory=dict)
    hosts: list[Host] = field(default_factory=list)
    otherwise: Progress = STOCKOUT
    machines_: dict[str, Machine] = field(default_factory=dict)
    by_request: dict[str, Progress] = field(default_factory=dict)
    sent: list[Launch] = field(default_factory=list)
    taken_back: set[str] = field(default_factory=set)
    deleted: list[str] = field(default_factory=list)
    working: dict[str, tuple[Launch, Host]] = field(default_factory=dict)
    trouble: list[Exception] = field(default_factory=list)
    """Raised by the next questions, one each."""
    before_create: Callable[[Launch], None] = lambda _launch: None
    snapshot: QuotaSnapshot | None = None
    alive_at_once: int = 0
    only_id: str = ""
    """The service's id of every machine, where they are one and the same."""

    def check(self, store_url: str) -> None:
        """Nothing to check."""

    def pause(self, seconds: float) -> None:
        """Give to `Edge.pause`: time passes, hosts work."""
        self.clock.seconds += seconds
        for name in list(self.working):
            self._work(name)

    def create(self, launch: Launch) -> Progress:
        self._raise()
        self.before_create(launch)
        self.sent.append(launch)
        if launch.request_id in self.by_request:
            return self._again(launch)
        key = (launch.rung.machine_type, launch.rung.provisioning_model.value, launch.zone)
        script = self.answers.get(key, [])
        answer = script.pop(0) if script else self.otherwise
        if isinstance(answer, str):
            return self._make(launch, answer)
        return answer

    def poll(self, launch: Launch, operation: str) -> Progress:
        self._raise()
        machine = self.machines_.get(launch.name)
        if machine is None:
            return Failure(outcome=Outcome.QUEUE_VANISHED, scope=Scope.RUNG, code="vanished", message="gone")
        if machine.state is MachineState.RUNNING:
            return Granted(machine)
        return Pending(operation, queued=machine.state is MachineState.QUEUED)

    def find(self, name: str, zone: str) -> Machine | None:
        self._raise()
        return self.machines_.get(name)

    def delete(self, name: str, zone: str) -> None:
        self._raise()
        self.machines_.pop(name, None)
        self.working.pop(name, None)
        self.deleted.append(name)

    def machines(self) -> tuple[Machine, ...]:
        return tuple(self.machines_.values())

    def preempted(self, name: str, zone: str) -> bool:
        return name in self.taken_back

    def quotas(self, regions: tuple[str, ...]) -> QuotaSnapshot:
        return self.snapshot or QuotaSnapshot(project="p", taken_at="t", regions=(), global_metrics=None)

    def _raise(self) -> None:
        if self.trouble:
            raise self.trouble.pop(0)

    def _again(self, launch: Launch) -> Progress:
        machine = self.machines_.get(launch.name)
        if machine is not None and machine.state is MachineState.QUEUED:
            return Pending("op-1", queued=True)
        return Granted(machine) if machine is not None else self.by_request[launch.request_id]

    def _make(self, launch: Launch, how: str) -> Progress:
        """`how`: run, queue, run-unheard (made, and the answer is lost)."""
        state = MachineState.QUEUED if how == "queue" else MachineState.RUNNING
        machine = Machine(
            name=launch.name,
            zone=launch.zone,
            id=self.only_id or str(len(self.sent)),
            state=state,
            machine_type=launch.rung.machine_type,
            provisioning_model=launch.rung.provisioning_model.value,
            attempt_id=launch.attempt_id,
            labels={},
        )
        self.machines_[launch.name] = machine
        self.alive_at_once = max(self.alive_at_once, len(self.machines_))
        host = self.hosts.pop(0) if self.hosts else Host()
        if how != "queue":
            self.working[launch.name] = (launch, host)
        self.by_request[launch.request_id] = Granted(machine)
        if how == "run-unheard":
            return LOST_ANSWER
        return Granted(machine) if how == "run" else Pending("op-1", queued=how == "queue")

    def grant(self, name: str) -> None:
        """Stock came for a queued machine."""
        self.machines_[name] = replace(self.machines_[name], state=MachineState.RUNNING)

    def _work(self, name: str) -> None:
        launch, host = self.working[name]
        host.steps += 1
        if host.ends == "silent" or host.steps < 2:
            return
        lease = launch.attempt_id
        if host.steps == 2:
            count = host.devices if host.devices is not None else launch.rung.width
            gpus = [{"index": i, "uuid": f"GPU-{i}", "name": "sim"} for i in range(count)]
            report = {"lease": lease, "hostname": "h", "gpus": gpus, "count": count, "python": "3.11", "started": 0.0}
            self.store.put(f"leases/{lease}/host.json", json.dumps(report).encode())
            host.began = self.clock.seconds
            return
        at = self.clock.seconds - host.began
        if host.progress is not None:
            self.store.put(f"leases/{lease}/progress.json", json.dumps(host.progress(at)).encode())
        if at < host.lasts:
            return
        self._end(launch, host)

    def _end(self, launch: Launch, host: Host) -> None:
        if host.ends == "running":
            return
        spec: dict[str, Any] = json.loads(self.store.get(launch.spec_key))
        digests = [unit["digest"] for unit in spec["units"]]
        digests += [spec["merge"]["digest"]] if spec["merge"] else []
        todo = [digest for digest in digests if not self.store.exists(f"records/{digest}.json")]
        done = todo if host.units is None else todo[: host.units]
        for digest in done:
            record = {"unit": digest, "lease": launch.attempt_id, "host": "h", "log": "", "ended": 1.0}
            record |= {"run_id": launch.run_id, "dispatch_id": launch.dispatch_id}
            assert self.store.put_if_absent(f"records/{digest}.json", json.dumps(record).encode()), "run after success"
        if host.ends == "finished":
            left = len(todo) - len(done)
            finished = {"state": "succeeded" if not left else "failed", "total": len(digests), "failed": left}
            finished |= {"succeeded": len(digests) - left, "reason": host.reason if left else ""}
            self.store.put(f"leases/{launch.attempt_id}/finished.json", json.dumps(finished).encode())
        elif host.ends in ("preempted", "shut-down"):
            self.taken_back.add(launch.name)
        if host.ends == "shut-down":
            finished = {"state": "cancelled", "total": len(digests), "succeeded": len(done), "reason": "terminated"}
            self.store.put(f"leases/{launch.attempt_id}/finished.json", json.dumps(finished).encode())
        self.machines_.pop(launch.name, None)
        self.working.pop(launch.name)
