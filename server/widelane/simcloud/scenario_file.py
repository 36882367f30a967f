"""Reads a scenario from YAML; every problem in one go, each with its place and a fix."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from yaml import SequenceNode

from widelane.errors import ScenarioError
from widelane.models.plan import ProvisioningModel
from widelane.simcloud.atlas import Atlas
from widelane.simcloud.client import scenario_bytes
from widelane.simcloud.marks import Node, Reading
from widelane.simcloud.quota import GLOBAL_METRICS, enforced_metrics
from widelane.simcloud.records import Json
from widelane.simcloud.scenario import ANY, Fault, FaultKind, Method, PreemptRule, Scenario, StockRule

TOP_KEYS = (
    "project",
    "clock",
    "boot_seconds",
    "operation_seconds",
    "preempt_grace_seconds",
    "stock",
    "quotas",
    "global_quotas",
    "faults",
    "preempt",
    "visible_gpus",
    "secrets",
)
STOCK_KEYS = ("zone", "machine_type", "model", "count", "then", "arrives_after_seconds")
FAULT_KEYS = ("on", "do", "nth", "times", "zone", "machine_type", "seconds", "case")
_LIMITS_MAX = 1e18


def read(path: Path, atlas: Atlas, cases: Mapping[str, Json]) -> Scenario:
    """The scenario in a file.

    `cases` are the names of the error table. Raises ScenarioError.
    """
    try:
        text = scenario_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: can't be read as text: {error}") from error
    return parse(text, str(path), atlas, cases)


def parse(text: str, origin: str, atlas: Atlas, cases: Mapping[str, Json]) -> Scenario:
    """The scenario in a text. Raises ScenarioError with every problem, a line each."""
    reading = _ScenarioReading(text, origin, atlas, cases)
    scenario = reading.scenario()
    if reading.problems:
        ordered = sorted(reading.problems, key=lambda problem: (problem.line, problem.column))
        raise ScenarioError("\n".join(str(problem) for problem in ordered))
    return scenario


def parse_fault(text: str, atlas: Atlas, cases: Mapping[str, Json]) -> Fault:
    """One fault from a text (YAML or JSON). Raises ScenarioError."""
    reading = _ScenarioReading(text, "fault", atlas, cases)
    fault = None if reading.root is None else reading.fault(reading.root)
    if fault is None or reading.problems:
        raise ScenarioError("\n".join(map(str, reading.problems)) or "no fault is given")
    return fault


class _ScenarioReading(Reading):
    def __init__(self, text: str, origin: str, atlas: Atlas, cases: Mapping[str, Json]) -> None:
        super().__init__(text, origin)
        self._atlas = atlas
        self._cases = cases

    def scenario(self) -> Scenario:
        if self.root is None:
            return Scenario()
        given = self.fields(self.root, TOP_KEYS, "the scenario")
        plain = Scenario()
        return Scenario(
            project=self.text(given["project"], "project") if "project" in given else plain.project,
            rate=self._rate(given, plain.rate),
            boot=self._seconds(given, "boot_seconds", plain.boot),
            operation=self._seconds(given, "operation_seconds", plain.operation),
            grace=self._seconds(given, "preempt_grace_seconds", plain.grace),
            stock=tuple(rule for node in self._list(given, "stock") for rule in self._stock(node)),
            quotas=self._quotas(given),
            global_quotas=self._limits(given["global_quotas"], GLOBAL_METRICS) if "global_quotas" in given else {},
            faults=tuple(fault for node in self._list(given, "faults") if (fault := self.fault(node))),
            preempt=tuple(rule for node in self._list(given, "preempt") if (rule := self._preempt(node))),
            visible_gpus=self._visible(given),
            secrets=self._secrets(given),
        )

    def _list(self, given: Mapping[str, Node], key: str) -> list[Node]:
        return self.items(given[key], key) if key in given else []

    def _seconds(self, given: Mapping[str, Node], key: str, default: float) -> float:
        return self.number(given[key], key, default=default) if key in given else default

    def _rate(self, given: Mapping[str, Node], default: float) -> float:
        clock = self.fields(given["clock"], ("rate",), "clock") if "clock" in given else {}
        return self.number(clock["rate"], "rate", least=0.001, default=default) if "rate" in clock else default

    def _words(self, given: Mapping[str, Node], key: str, choices: tuple[str, ...]) -> list[str]:
        """One word, a list of them, or "*" (also when absent)."""
        if key not in given:
            return [ANY]
        node = given[key]
        several = self.items(node, key) if isinstance(node, SequenceNode) else [node]
        words = (self.text(each, key.replace("_", " "), (*choices, ANY)) for each in several)
        return [word for word in words if word]

    def _stock(self, node: Node) -> Iterator[StockRule]:
        given = self.fields(node, STOCK_KEYS, "a stock rule")
        if "count" not in given:
            self.complain(node, "missing_key", "a stock rule needs a count", "add count: 0 or more")
        zones = self._words(given, "zone", self._atlas.zones)
        types = self._words(given, "machine_type", tuple(self._atlas.machine_types))
        models = self._words(given, "model", tuple(ProvisioningModel))
        count = self.whole(given["count"], "count") if "count" in given else 0
        then = self.text(given["then"], "then", ("stockout", "pending"), "stockout") if "then" in given else "stockout"
        arrives = None
        if "arrives_after_seconds" in given:
            arrives = self.number(given["arrives_after_seconds"], "arrives_after_seconds")
            if then != "pending":
                node_at = given["arrives_after_seconds"]
                self.complain(node_at, "no_effect", "arrives_after_seconds needs then: pending", "add then: pending")
        for zone, machine_type, model in itertools.product(zones, types, models):
            self._check_offer(node, zone, machine_type, model)
            yield StockRule(zone, machine_type, model, count, then == "pending", arrives)

    def _check_offer(self, node: Node, zone: str, machine_type: str, model: str) -> None:
        if machine_type == ANY:
            return
        offered = self._atlas.offered(machine_type)
        if zone != ANY and zone not in offered:
            fix = f"it is in {', '.join(offered)}" if offered else "no zone offers it"
            self.complain(node, "not_offered", f"{machine_type} isn't offered in {zone}", fix)
        allowed = {each.value for each in self._atlas.machine_types[machine_type].provisioning_models}
        if model not in {ANY, *allowed}:
            fix = f"it allows {', '.join(sorted(allowed))}" if allowed else "it can't be created by itself"
            self.complain(node, "not_offered", f"{machine_type} can't be had as {model}", fix)

    def _quotas(self, given: Mapping[str, Node]) -> dict[str, dict[str, float]]:
        if "quotas" not in given:
            return {}
        by_region = self.fields(given["quotas"], self._atlas.regions, "quotas")
        known = tuple(enforced_metrics(self._atlas))
        return {region: self._limits(node, known) for region, node in by_region.items()}

    def _limits(self, node: Node, known: tuple[str, ...]) -> dict[str, float]:
        given = self.fields(node, known, "the quotas")
        return {metric: min(self.number(value, metric), _LIMITS_MAX) for metric, value in given.items()}

    def fault(self, node: Node) -> Fault | None:
        """One fault; None when it can't be used."""
        given = self.fields(node, FAULT_KEYS, "a fault")
        for key in ("on", "do"):
            if key not in given:
                self.complain(node, "missing_key", f"a fault needs {key!r}", f"add {key}")
                return None
        on = self.text(given["on"], "method", tuple(Method))
        do = self.text(given["do"], "fault", tuple(FaultKind))
        if not on or not do:
            return None
        case = self._case(given.get("case"), node, on, do)
        zones, types = self._atlas.zones, tuple(self._atlas.machine_types)
        return Fault(
            on=Method(on),
            do=FaultKind(do),
            nth=self.whole(given["nth"], "nth", least=1, default=1) if "nth" in given else 1,
            times=self.whole(given["times"], "times", least=1, default=1) if "times" in given else 1,
            zone=self.text(given["zone"], "zone", (*zones, ANY)) if "zone" in given else ANY,
            machine_type=self.text(given["machine_type"], "machine type", (*types, ANY))
            if "machine_type" in given
            else ANY,
            seconds=self.number(given["seconds"], "seconds") if "seconds" in given else 30.0,
            case=case,
        )

    def _case(self, node: Node | None, whole: Node, on: str, do: str) -> str:
        """Name of the case of the error table that `do: answer` answers with."""
        if node is None:
            if do == FaultKind.ANSWER:
                self.complain(whole, "missing_key", "do: answer needs a case of the error table", "add case: NAME")
            return ""
        name = self.text(node, "error case", tuple(self._cases))
        if do != FaultKind.ANSWER:
            self.complain(node, "no_effect", f"do: {do} takes no case", "use do: answer, or remove case")
        kind = self._cases[name]["kind"] if name else "http"
        if kind == "transport":
            self.complain(node, "no_effect", f"{name} is no answer of the service", "use a drop or lose_answer fault")
        if kind == "operation" and on != Method.INSERT:
            self.complain(node, "no_effect", f"{name} is the end of an operation", "use it with on: insert")
        return name

    def _preempt(self, node: Node) -> PreemptRule | None:
        given = self.fields(node, ("machine_type", "after_seconds", "times"), "a preemption")
        for key in ("machine_type", "after_seconds"):
            if key not in given:
                self.complain(node, "missing_key", f"a preemption needs {key!r}", f"add {key}")
                return None
        return PreemptRule(
            machine_type=self.text(given["machine_type"], "machine type", (*self._atlas.machine_types, ANY)),
            after=self.number(given["after_seconds"], "after_seconds"),
            times=self.whole(given["times"], "times", least=1) if "times" in given else None,
        )

    def _visible(self, given: Mapping[str, Node]) -> dict[str, int]:
        if "visible_gpus" not in given:
            return {}
        nodes = self.fields(given["visible_gpus"], tuple(self._atlas.machine_types), "visible_gpus")
        return {name: self.whole(node, f"visible_gpus of {name}") for name, node in nodes.items()}

    def _secrets(self, given: Mapping[str, Node]) -> dict[str, str]:
        if "secrets" not in given:
            return {}
        named = self.pairs(given["secrets"], "secrets")
        return {str(key.value): self.text(value, f"the secret {key.value}") for key, value in named}
