"""What can be looked up without judging a plan: the policy in force, ladders, machines, runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from widelane import facts
from widelane.models.plan import Axis, Marks, ParsedPlan, Phase, Plan

if TYPE_CHECKING:
    from widelane.facts import Policy
    from widelane.models.catalog import Intent
    from widelane.tools.desk import Desk

NEWEST_RUNS = 50


def policy(desk: Desk) -> dict[str, Any]:
    """Every policy value in force with its unit and reason, and the rungs that families may have."""
    settings = facts.policy_settings().values()
    return {
        "version": desk.policy.version,
        "values": {
            setting.name: {"value": getattr(desk.policy, setting.name), "unit": setting.unit, "why": setting.why}
            for setting in settings
        },
        "rungs": {
            rule.family: {
                "provisioning_models": sorted(rule.provisioning_models),
                "widths": sorted(rule.widths, reverse=True),
                "why": rule.why,
            }
            for rule in desk.policy.rung_rules.values()
        },
    }


def ladders(desk: Desk) -> dict[str, dict[str, list[str]]]:
    """By intent, then by "WIDTH long" or "WIDTH short": rungs as "LANE MODEL MACHINE", in order."""
    found: dict[str, dict[str, list[str]]] = {}
    for intent in desk.catalog.intents.values():
        plan = Plan(widelane=1, phases=tuple(_requests(intent, desk.policy)))
        verdict = desk.judge.verdict(ParsedPlan(plan, Marks({}), "", None), desk.known_quotas())
        found[intent.name] = {
            phase.name: [f"{rung.lane} {rung.provisioning_model.value} {rung.machine_type}" for rung in phase.ladder]
            for phase in verdict.phases
            if phase.ladder
        }
    return found


def _requests(intent: Intent, policy: Policy) -> list[Phase]:
    """One phase for each width that the intent may be asked for, as long and as short work; unknown counts as long."""
    widths = [width for width in policy.widths if width >= intent.floor] if intent.base_gpus else [0]
    lengths = (("long", None), ("short", policy.short_gpu_hours / 2))
    return [
        Phase(
            name=f"{width} {length}",
            intent=intent.name,
            axes=(Axis(name="unit", size=64),),
            gpu_hours=hours if width else None,
            width=width or None,
            min_width=min(width, intent.floor) or None,
            command="run {unit}",
            outputs=("{unit}.json",),
        )
        for width in widths
        for length, hours in lengths
    ]


def catalog(desk: Desk) -> dict[str, Any]:
    """Machine types with their zones and prices, and the intents."""
    found = desk.catalog
    zones = {name: [offer.zone for offer in offers] for name, offers in found.offers.items()}
    machines = {
        name: machine.model_dump(mode="json", exclude={"name", "source"}, exclude_none=True)
        | {"zones": zones.get(name, [])}
        for name, machine in found.machine_types.items()
    }
    return {
        "machine_types": machines,
        "prices": [price.model_dump(mode="json", exclude_none=True) for price in found.prices.values()],
        "intents": {name: intent.model_dump(mode="json", exclude={"name"}) for name, intent in found.intents.items()},
    }


def runs(desk: Desk) -> list[dict[str, Any]]:
    """The newest runs in short: state, and each phase's widths and units."""
    return [
        {
            "run_id": run.run_id,
            "state": run.state.value,
            "task": run.task,
            "started_at": run.started_at,
            "phases": [
                {
                    "name": phase.name,
                    "state": phase.state.value,
                    "requested_width": phase.requested_width,
                    "realized_width": phase.realized_width,
                    "units": phase.units.model_dump(),
                }
                for phase in run.phases
            ],
        }
        for run in desk.runs.runs()[:NEWEST_RUNS]
    ]


PAGES: Mapping[str, Callable[[Desk], Any]] = {"policy": policy, "ladder": ladders, "catalog": catalog, "runs": runs}
"""By the name under which each is looked up."""
