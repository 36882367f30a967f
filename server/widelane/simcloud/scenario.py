"""What a simulated cloud has to give: stock, quotas, faults, preemptions, and how fast its clock runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from widelane.models.plan import ProvisioningModel

ANY = "*"


@dataclass(frozen=True, slots=True)
class Combination:
    """What stock is counted by: a zone, a machine type and a provisioning model."""

    zone: str
    machine_type: str
    model: ProvisioningModel

    def __str__(self) -> str:
        return f"{self.zone}/{self.machine_type}/{self.model.value}"


@dataclass(frozen=True, slots=True)
class StockRule:
    """Stock of every combination that it matches, each with its own `count`. "*" matches anything.

    `pending`: a flex-start request that finds no stock waits for it. `arrives_after`: one more machine arrives
    for a request that has waited so many simulated seconds.
    """

    zone: str
    machine_type: str
    model: str
    count: int
    pending: bool = False
    arrives_after: float | None = None

    def matches(self, wanted: Combination) -> bool:
        """Whether this rule speaks of that combination."""
        return (
            self.zone in {ANY, wanted.zone}
            and self.machine_type in {ANY, wanted.machine_type}
            and self.model in {ANY, wanted.model.value}
        )

    @property
    def specificity(self) -> int:
        """How many of the three keys are named."""
        return sum(key != ANY for key in (self.zone, self.machine_type, self.model))


NOTHING = StockRule(ANY, ANY, ANY, 0)


class FaultKind(StrEnum):
    """What goes wrong with a matched request."""

    HTTP_503 = "http_503"
    HTTP_429 = "http_429"
    HTTP_502 = "http_502"
    DROP_BEFORE_COMMIT = "drop_before_commit"
    """The connection closes and nothing was done."""
    DROP_AFTER_COMMIT = "drop_after_commit"
    """All was done and the connection closes without an answer."""
    LOSE_ANSWER = "lose_answer"
    """All was done and the answer is withheld for `seconds` (real ones), then the connection closes."""
    ANSWER = "answer"
    """The body `case` of the error table: as the HTTP answer, or as the end of the operation."""


class Method(StrEnum):
    """The API methods, as faults and the request log name them."""

    INSERT = "insert"
    GET = "get"
    LIST = "list"
    AGGREGATED = "aggregated"
    DELETE = "delete"
    STOP = "stop"
    LABELS = "labels"
    GUEST_ATTRIBUTES = "guest_attributes"
    SERIAL = "serial"
    OPERATION = "operation"
    OPERATIONS = "operations"
    WAIT = "wait"
    REGION = "region"
    PROJECT = "project"
    ZONE = "zone"
    MACHINE_TYPE = "machine_type"


@dataclass(frozen=True, slots=True)
class Fault:
    """Strikes the `nth` request (from 1) that matches, and the `times - 1` after it."""

    on: Method
    do: FaultKind
    nth: int = 1
    times: int = 1
    zone: str = ANY
    machine_type: str = ANY
    """Of the insert's body; "*" also matches requests that have none."""
    seconds: float = 30.0
    case: str = ""


@dataclass(frozen=True, slots=True)
class PreemptRule:
    """Spot VMs of this machine type are preempted so many simulated seconds after they run; at most `times` of them."""

    machine_type: str
    after: float
    times: int | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario. Seconds are simulated ones; `rate` is how many of them pass in a real second."""

    project: str = "sim-project"
    rate: float = 60.0
    boot: float = 5.0
    """From an accepted insert to RUNNING."""
    operation: float = 2.0
    """How long a refusal, a delete or a stop takes to come out."""
    grace: float = 30.0
    """From the preemption notice to the kill."""
    stock: tuple[StockRule, ...] = ()
    quotas: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    """Limits by region and metric. What isn't here is neither listed nor enforced."""
    global_quotas: dict[str, float] = field(default_factory=dict[str, float])
    faults: tuple[Fault, ...] = ()
    preempt: tuple[PreemptRule, ...] = ()
    visible_gpus: dict[str, int] = field(default_factory=dict[str, int])
    """GPUs that a VM of the machine type shows, when not as many as it should."""
    secrets: dict[str, str] = field(default_factory=dict[str, str])
    """What Secret Manager holds, by name."""

    def rule_for(self, wanted: Combination) -> StockRule:
        """The most specific rule; of equally specific ones the last in the file; none: no stock."""
        best = NOTHING
        for rule in self.stock:
            if rule.matches(wanted) and rule.specificity >= best.specificity:
                best = rule
        return best
