"""Turns a judged plan into a run: checks, publishes, and writes the one row that asks for it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from widelane.config import Settings, make_home
from widelane.dispatcher.assembly import bench_of, make_bench, plan_of, settings_of
from widelane.dispatcher.assignment import Assignment
from widelane.dispatcher.edge import new_run_id
from widelane.dispatcher.places import default_store
from widelane.dispatcher.sourcing import publish_sources
from widelane.errors import BusyError, InputError
from widelane.lanes.clock import SystemClock
from widelane.lanes.registry import open_lane
from widelane.ledger import Journal, RunState, fold
from widelane.ledger.events import RequestedPhase, RunRequested
from widelane.models.dispatch import DispatchAnswer, DispatchState
from widelane.models.plan import Accept, ParsedPlan, Phase, Plan
from widelane.models.verdict import PhaseVerdict, PlanVerdict
from widelane.router import UnitSalt, dispatch_key, make_units
from widelane.store import is_at_hand, open_store, publish_runner

_DISCREET = frozenset({"gcp", "local"})
"""Lanes that hand secrets over: gcp's machines read Secret Manager, local work has its starter's environment."""


@dataclass(frozen=True, slots=True)
class SimTarget:
    """A simulated cloud that the run walks instead of the real one."""

    url: str


class Submission:
    """One plan on its way to a run."""

    def __init__(self, settings: Settings, parsed: ParsedPlan, verdict: PlanVerdict) -> None:
        self._settings = settings
        self._parsed = parsed
        self._verdict = verdict

    def prepare(self, *, phase: str | None, fresh: bool, sim: SimTarget | None) -> tuple[str, RunRequested]:
        """The id and the request of a new run, with what its hosts need published. Leaves the journal alone.

        Raises:
            InputError, ConfigError, LaneAuthError: the plan can't be dispatched as it is; nothing was written.
        """
        chosen = self._chosen(phase)
        self._check(chosen)
        request = self._request(chosen, sim)
        run_id = new_run_id(SystemClock().now())
        if fresh:
            request = request.model_copy(update={"generation": run_id})
        request = request.model_copy(update={"phases": _numbered(request.phases, run_id)})
        _check_inputs(run_id, request)
        return run_id, request

    def submit(self, journal: Journal, run_id: str, request: RunRequested) -> DispatchAnswer:
        """Write the request for a run, or name the run that is at it or has done it.

        Raises:
            BusyError: other work is under way in its place.
        """
        fresh = bool(request.generation)
        with journal.transaction():
            found = _at_work(journal, request)
            if found is None and not fresh:
                found = _done_before(journal, request)
            if found is not None:
                return self._answer(found[0], found[1], started=False)
            journal.append(run_id, request)
        return self._answer(run_id, "started", started=True)

    def refused(self) -> DispatchAnswer:
        """The answer when the verdict is REVISE."""
        return DispatchAnswer(
            started=False,
            reason="plan_revise",
            plan_digest=self._verdict.plan_digest,
            plan=self._verdict,
            next_step="apply the fixes of the findings and plan again; nothing was created",
        )

    def _answer(self, run_id: str, reason: str, *, started: bool) -> DispatchAnswer:
        words = {
            "started": f"wait for it with dispatch_status run_id={run_id}",
            "adopted": f"the same work is under way as {run_id}; nothing new was started",
            "already_done": f"every unit has a record since {run_id}; nothing was created; fresh runs it again",
        }
        return DispatchAnswer(
            started=started,
            reason=reason,
            run_id=run_id,
            plan_digest=self._verdict.plan_digest,
            next_step=words[reason],
        )

    def _chosen(self, name: str | None) -> list[tuple[Phase, PhaseVerdict]]:
        """The phases to run with their verdicts, in plan order."""
        pairs = list(zip(self._parsed.plan.phases, self._verdict.phases, strict=True))
        if name is None:
            return pairs
        chosen = [pair for pair in pairs if pair[0].name == name]
        if not chosen:
            known = ", ".join(phase.name for phase, _ in pairs)
            raise InputError(f"{self._parsed.origin}: no phase {name!r}", hint=f"phases: {known}", code="no_such_phase")
        return chosen

    def _check(self, chosen: list[tuple[Phase, PhaseVerdict]]) -> None:
        """Refuse what can't be carried out, before anything is written."""
        numbers = {phase.name: number for number, phase in enumerate(self._parsed.plan.phases)}
        for phase, verdict in chosen:
            line, column = self._parsed.marks.place("phases", numbers[phase.name])
            place = f"{self._parsed.origin}:{line}:{column}: phase {phase.name}"
            if phase.command is None and not any(arm.command for arm in phase.arms):
                raise InputError(f"{place} has no command", hint="add `command:`", code="no_command")
            deaf = sorted({rung.lane for rung in verdict.ladder} - _DISCREET)
            if phase.secrets and deaf:
                walks = ", ".join(deaf)
                hint = f"only gcp and local hand them over, and it may walk {walks}: pin its lane, or leave them out"
                raise InputError(f"{place} names secrets", hint=hint, code="secrets_unsupported")
            if phase.hold:
                hint = "leave `hold` out; each phase walks for its own machine"
                raise InputError(f"{place} holds the machine of the phase before", hint=hint, code="hold_unsupported")

    def _request(self, chosen: list[tuple[Phase, PhaseVerdict]], sim: SimTarget | None) -> RunRequested:
        """Publish what the hosts need, and say what is asked for."""
        store_url = self._store_url(chosen, sim)
        for name in {rung.lane for _, verdict in chosen for rung in verdict.ladder}:
            lane = open_lane(name, self._settings)
            lane.check(store_url)
        make_home(self._settings.home)
        store = open_store(store_url)
        sources = publish_sources(store, self._parsed)
        keys = _dispatch_keys(self._parsed.plan, self._verdict, sources)
        phases = tuple(
            RequestedPhase(dispatch_id="", dispatch_key=keys[phase.name], verdict=verdict) for phase, verdict in chosen
        )
        return RunRequested(
            run_key=_digest([phase.dispatch_key for phase in phases] + [store_url]),
            task=self._parsed.plan.task,
            plan=self._parsed.as_json(),
            plan_digest=self._verdict.plan_digest,
            origin=self._parsed.origin,
            phases=phases,
            store_url=store_url,
            runner_sha256=publish_runner(store),
            sources=sources,
            settings=self._settings.model_dump(mode="json"),
            sim_url=sim.url if sim is not None else None,
            accepted=_accepted(self._parsed.plan),
        )

    def _store_url(self, chosen: list[tuple[Phase, PhaseVerdict]], sim: SimTarget | None) -> str:
        """One store a run: the plan's, the lane's bucket, the configured one, or a folder of the home.

        The bucket counts as soon as any phase of the plan may run on Google Cloud, so that one dispatched alone finds
        what the others wrote. A rehearsal reaches no real store: it has a folder of its own.
        """
        named = {phase.store for phase, _ in chosen if phase.store is not None}
        if len(named) > 1:
            raise InputError(f"{self._parsed.origin}: a run has one store, the plan names {', '.join(sorted(named))}")
        folder = default_store(self._settings.home)
        if sim is not None:
            ours = [url for url in named if is_at_hand(url)]
            return ours[0] if ours else folder.with_name("rehearsals").absolute().as_uri()
        if named:
            return named.pop()
        given, gcp = self._settings.store, self._settings.gcp
        on_gcp = any(rung.lane == "gcp" for verdict in self._verdict.phases for rung in verdict.ladder)
        if on_gcp and gcp is not None and gcp.bucket and (given is None or is_at_hand(given)):
            return f"gs://{gcp.bucket}"
        return given or folder.absolute().as_uri()


def _numbered(phases: tuple[RequestedPhase, ...], run_id: str) -> tuple[RequestedPhase, ...]:
    return tuple(
        phase.model_copy(update={"dispatch_id": f"{run_id}-{number}"}) for number, phase in enumerate(phases, 1)
    )


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _dispatch_keys(plan: Plan, verdict: PlanVerdict, sources: dict[str, str]) -> dict[str, str]:
    """Key of each phase: its units without their inputs, its width bounds, and the keys of the phases before it."""
    keys: dict[str, str] = {}
    left = {phase.name: (phase, judged) for phase, judged in zip(plan.phases, verdict.phases, strict=True)}
    while left:
        ready = [pair for pair in left.values() if all(name in keys for name in pair[0].after)]
        for phase, judged in ready:
            salt = UnitSalt(sources.get(phase.name, ""), tuple(keys[name] for name in phase.after), "")
            units = make_units(phase, shards=1, salt=salt, group=judged.gpus_per_shard or None)
            keys[phase.name] = dispatch_key(units, phase.name, judged.min_width, judged.requested_width)
            del left[phase.name]
    return keys


def _accepted(plan: Plan) -> tuple[Accept, ...]:
    return plan.accept + tuple(accept for phase in plan.phases for accept in phase.accept)


def _check_inputs(run_id: str, request: RunRequested) -> None:
    """A phase dispatched without the ones before it needs their records."""
    run = RunState(run_id, request, "", {})
    plan = plan_of(run)
    named = {phase.name for phase in request.phases}
    bench = make_bench(settings_of(request))
    phases = {phase.name: phase for phase in plan.phases}
    for name in named:
        for before in phases[name].after:
            if before in named:
                continue
            work = Assignment(
                run=run, plan=plan, phase=phases[before], bench=bench, store=open_store(request.store_url)
            )
            if not work.complete():
                hint = f"dispatch the whole plan, or `--phase {before}` first"
                raise InputError(f"phase {name} comes after {before}, which has not run", hint=hint, code="not_run")


def _at_work(journal: Journal, request: RunRequested) -> tuple[str, str] | None:
    """(run id, reason) of the live run to adopt; refuses when other work is in its place."""
    keys = {phase.dispatch_key for phase in request.phases}
    names = {phase.name for phase in request.phases}
    for run_id in journal.live_runs():
        live = fold(journal.events(run_id)).requested
        if live.run_key == request.run_key:
            return run_id, "adopted"
        shared = keys & {phase.dispatch_key for phase in live.phases}
        crossed = names & {phase.name for phase in live.phases} if live.task == request.task is not None else set[str]()
        if shared or crossed:
            what = f"task {live.task}, " if live.task else ""
            raise BusyError(
                f"{what}phase {', '.join(sorted(crossed or names))} is under way as {run_id} "
                f"(plan {live.plan_digest[:12]} of {live.origin}); this is plan {request.plan_digest[:12]}",
                hint=f"wait for it, or `widelane cancel {run_id}`",
                code="other_work",
            )
    return None


def _done_before(journal: Journal, request: RunRequested) -> tuple[str, str] | None:
    """(run id, reason) of an ended run of this work whose records are all still there."""
    for run_id in journal.runs_with_key(request.run_key):
        run = fold(journal.events(run_id))
        if run.ended is None or run.ended.state != DispatchState.SUCCEEDED.value:
            continue
        plan = plan_of(run)
        bench = bench_of(run)
        store = open_store(run.requested.store_url)
        named = {phase.name for phase in run.requested.phases}
        works = [
            Assignment(run=run, plan=plan, phase=p, bench=bench, store=store) for p in plan.phases if p.name in named
        ]
        if all(work.complete() for work in works):
            return run_id, "already_done"
    return None
