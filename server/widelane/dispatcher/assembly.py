"""Puts a dispatch together from what its request recorded: plan, policy, store, lanes."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from widelane.config import Settings
from widelane.dispatcher.assignment import Assignment
from widelane.dispatcher.case import Case
from widelane.dispatcher.edge import Edge
from widelane.facts import catalog, load_intents, load_policy
from widelane.lanes.protocol import Lane
from widelane.lanes.registry import open_lane
from widelane.ledger import Journal, RunState
from widelane.ledger.events import RunRequested
from widelane.models.plan import Plan
from widelane.router import Bench
from widelane.store import open_store


def settings_of(requested: RunRequested) -> Settings:
    """The caller's settings at the time of the request."""
    return Settings.model_validate(requested.settings)


def plan_of(run: RunState) -> Plan:
    """The run's plan."""
    return Plan.model_validate(run.requested.plan)


def after_of(run: RunState) -> dict[str, tuple[str, ...]]:
    """Phases of the run that each phase waits for. A phase that the run leaves out was done before it."""
    return {phase.name: phase.after for phase in plan_of(run).phases}


def bench_of(run: RunState) -> Bench:
    """Tables, policy and lanes as the run's caller had them."""
    return make_bench(settings_of(run.requested))


def make_bench(settings: Settings) -> Bench:
    """Tables, policy and lanes under these settings."""
    policy = load_policy(settings.policy, str(settings.file or "widelane.toml"))
    return Bench(
        catalog=catalog(),
        policy=policy,
        intents=load_intents(settings.intents),
        lanes=settings.lanes,
        regions=settings.regions,
        disk_gib=settings.gcp.disk_gib if settings.gcp is not None else None,
        external_address=settings.gcp.external_address if settings.gcp is not None else True,
        rooms=settings.rooms,
    )


def work_of(run: RunState, phase_name: str) -> Assignment:
    """One phase of a run, as work."""
    plan = plan_of(run)
    phase = next(phase for phase in plan.phases if phase.name == phase_name)
    bench = bench_of(run)
    needed = phase.needs.disk_gib
    bench = replace(bench, disk_gib=bench.disk_gib if needed is None else ceil(needed))
    return Assignment(run=run, plan=plan, phase=phase, bench=bench, store=open_store(run.requested.store_url))


def open_case(journal: Journal, run_id: str, dispatch_id: str, edge: Edge) -> tuple[Case, Assignment]:
    """A dispatch in hand, with its work."""
    case = Case(journal, run_id, dispatch_id, edge)
    return case, work_of(case.run, case.phase.requested.name)


def open_lane_of(name: str, requested: RunRequested) -> Lane:
    """A lane with the settings of a request."""
    return open_lane(name, settings_of(requested))


def system_edge() -> Edge:
    """The real world."""
    return Edge(open_lane=open_lane_of)
