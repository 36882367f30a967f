"""The seam between the walk and the lanes.

A lane never decides: it sends one create, tells how it went in the classes of `models.attempt`, and reads
and deletes what it created. The walk (dispatcher) owns order, budgets, retries and the journal.

Every method blocks, is safe to call from any thread, bounds each network call by a time-out, and raises
`LaneAuthError` or `LaneUnknownError` where no classified answer exists.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from widelane.models.attempt import Failure
from widelane.models.clock import Clock
from widelane.models.quota import QuotaSnapshot
from widelane.models.room import LaneRoom
from widelane.models.verdict import Rung


@dataclass(frozen=True, slots=True)
class Launch:
    """One create, decided and written to the ledger before the lane hears of it.

    `name` derives from the attempt, so that a repeat collides instead of doubling. `request_id` is a UUID;
    the same one is sent again while the outcome is unknown. `fence_seconds` is the server-side run limit,
    after which the machine deletes itself. `wait_seconds` is the queue budget of a FLEX_START rung, else 0.
    """

    attempt_id: str
    run_id: str
    dispatch_id: str
    dispatch_key: str
    name: str
    request_id: str
    rung: Rung
    zone: str
    fence_seconds: int
    wait_seconds: int
    store_url: str
    spec_key: str
    """Key of the unit list in the store (`runner/spec.py` has its form)."""
    runner_sha256: str
    image: str | None = None
    disk_gib: int | None = None
    least_seconds: int = 0
    """Wall clock that the work is expected to take; a lane that can't run it for so long refuses. 0: unknown."""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    secrets: tuple[str, ...] = ()
    """Names of secrets that the work needs. A lane that can't hand their values over is never given any."""


class MachineState(StrEnum):
    """What the lane says of a machine, in the words that the walk needs."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine as the service describes it now. `machine_type` and `provisioning_model` are read back, not echoed."""

    name: str
    zone: str
    id: str
    state: MachineState
    machine_type: str
    provisioning_model: str
    attempt_id: str
    """From its label; "" when it isn't ours."""
    labels: dict[str, str]
    created_at: str = ""
    progress: str = ""
    """What the host last published through the lane (guest attributes); JSON or ""."""
    end: Failure | None = None
    """Why it stopped, where the service tells; None as long as it hasn't, or where it doesn't."""


@dataclass(frozen=True, slots=True)
class Granted:
    """The create succeeded and the machine runs."""

    machine: Machine


@dataclass(frozen=True, slots=True)
class Pending:
    """The create was accepted and isn't decided yet. `queued`: it waits for stock, or for its turn."""

    operation: str
    queued: bool
    hint: str = ""
    """What it waits for and until about when, in words, where the service tells."""


Progress = Granted | Pending | Failure


class Lane(Protocol):
    """One lane, built from settings by `lanes.registry.open_lane`."""

    @property
    def name(self) -> str:
        """As in the policy's lane order."""
        ...

    @property
    def clock(self) -> Clock:
        """Deadlines about this lane's machines run on this clock (a simulated cloud has its own)."""
        ...

    @property
    def poll_seconds(self) -> float:
        """How long to leave between two questions, in seconds of `clock`."""
        ...

    def check(self, store_url: str) -> None:
        """Raise `ConfigError` or `LaneAuthError` when a create could not work; called before any walk.

        `store_url` is the store that machines will be given; "" leaves the question out.
        """
        ...

    def create(self, launch: Launch) -> Progress:
        """Send the create once. A Failure with `outcome_known` False may have taken effect."""
        ...

    def poll(self, launch: Launch, operation: str) -> Progress:
        """How an accepted create stands now; waits at most a second or two."""
        ...

    def find(self, name: str, zone: str) -> Machine | None:
        """The machine of that name, None when the service says that there is none."""
        ...

    def delete(self, name: str, zone: str) -> None:
        """Ask for deletion; absence is success. Also cancels a queued request. Returns once accepted."""
        ...

    def machines(self) -> tuple[Machine, ...]:
        """Every machine with our label, in every zone, creates under way included."""
        ...

    def preempted(self, name: str, zone: str) -> bool:
        """Whether the service took the machine away (as against it ending or being deleted by us)."""
        ...

    def quotas(self, regions: tuple[str, ...]) -> QuotaSnapshot:
        """One read of each region and one of the project."""
        ...


@runtime_checkable
class Roomy(Protocol):
    """A lane whose machines are in no table: it can say itself how large they are."""

    def room(self) -> LaneRoom:
        """What its largest machine holds now.

        Raises:
            LaneAuthError, LaneUnknownError: it can't be asked.
        """
        ...
