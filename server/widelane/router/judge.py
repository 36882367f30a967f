"""The verdict on a plan: pure arithmetic from plan, tables, policy and quotas."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf

from widelane.facts import Policy
from widelane.models.catalog import Intent
from widelane.models.plan import ParsedPlan, Phase, Plan
from widelane.models.verdict import (
    Economics,
    Finding,
    FindingCode,
    Length,
    PhaseVerdict,
    PlanVerdict,
    Rung,
    Severity,
    Verdict,
    WidthRow,
)
from widelane.router.bench import GCP, Bench
from widelane.router.chains import chain_findings
from widelane.router.choosing import Choice, binding
from widelane.router.command_findings import command_findings
from widelane.router.holding import held_widths
from widelane.router.ladder import (
    Need,
    Walk,
    gcp_rungs,
    gpu_ladder,
    legal_widths,
    local_rung,
    need_of,
    survey,
)
from widelane.router.phase_case import GpuSide, PhaseCase
from widelane.router.plan_findings import (
    arm_findings,
    declaration_findings,
    idle_findings,
    intent_findings,
    reload_findings,
    spot_findings,
)
from widelane.router.rooms import fit_rooms
from widelane.router.sheet import Sheet, width_sheet
from widelane.router.spot import daly_interval
from widelane.router.width_findings import width_findings
from widelane.router.work import Mode, Work, measure

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def judge(parsed: ParsedPlan, bench: Bench) -> PlanVerdict:
    """The verdict on every phase. The same plan on the same bench gives the same verdict."""
    held = held_widths(parsed.plan.phases, lambda index: _case(parsed, bench, index).width)
    places = _places(parsed.plan.phases)
    phases = tuple(
        _phase_verdict(case, held.get(phase.name, 0), tuple(_chained(case, parsed, places)))
        for case, phase in ((_case(parsed, bench, index), phase) for index, phase in enumerate(parsed.plan.phases))
    )
    return PlanVerdict(
        verdict=Verdict.REVISE if any(phase.verdict is Verdict.REVISE for phase in phases) else Verdict.PASS,
        plan_digest=plan_digest(parsed, bench.policy),
        policy_version=bench.policy.version,
        phases=phases,
    )


def _places(phases: tuple[Phase, ...]) -> dict[str, int]:
    """Where each phase stands, when any waits for another."""
    if not any(phase.after for phase in phases):
        return {}
    return {phase.name: index for index, phase in enumerate(phases)}


def _chained(case: PhaseCase, parsed: ParsedPlan, places: dict[str, int]) -> Iterable[Finding]:
    if not case.phase.after and not case.phase.hold:
        return ()
    return chain_findings(case, places, lambda index: _case(parsed, case.bench, index))


def plan_digest(parsed: ParsedPlan, policy: Policy) -> str:
    """sha256 over the normalized plan and the policy: not over where keys stand, nor over the source's content."""
    digest = hashlib.sha256()
    for piece in _canonical(parsed.plan, policy):
        digest.update(piece.encode())
    return digest.hexdigest()


def _canonical(plan: Plan, policy: Policy) -> Iterator[str]:
    """The JSON of plan and policy version with sorted keys, phase by phase: a large plan is never there twice."""
    rest = plan.model_dump(mode="json", exclude_defaults=True, exclude={"phases"})
    before = {key: value for key, value in rest.items() if key < "phases"}
    after = {key: value for key, value in rest.items() if key > "phases"}
    yield '{"plan":{' + (f"{_members(before)}," if before else "")
    yield '"phases":['
    for index, phase in enumerate(plan.phases):
        yield ("," if index else "") + _json(phase.model_dump(mode="json", exclude_defaults=True))
    yield "]" + (f",{_members(after)}" if after else "") + '},"policy":' + _json(policy.version) + "}"


def _json(value: object) -> str:
    return _ENCODER.encode(value)


def _members(fields: dict[str, object]) -> str:
    """The inside of an object."""
    return _json(fields)[1:-1]


def _case(parsed: ParsedPlan, bench: Bench, index: int) -> PhaseCase:
    phase = parsed.plan.phases[index]
    intent = bench.intents.get(phase.intent) if phase.intent is not None else None
    work = measure(phase, intent)
    case = PhaseCase(bench, parsed.plan, parsed.marks, index, phase, intent, work)
    if intent is not None and not case.without_gpu:
        case.gpu = _gpu_side(case, intent)
    return case


def _gpu_side(case: PhaseCase, intent: Intent) -> GpuSide:
    bench, phase, work = case.bench, case.phase, case.work
    legal, need = legal_widths(bench, intent), need_of(phase, intent)
    limit = bench.policy.run_limit_seconds / 3600
    if phase.time_limit_hours:
        limit = min(limit, phase.time_limit_hours)
    if case.accepted(FindingCode.EXCEEDS_RUN_LIMIT) is not None:
        limit = inf
    # Only multiples of the group are asked for; when there is none, bad_group says so.
    widths = tuple([w for w in legal if w >= work.group and w % work.group == 0]) or legal[-1:]
    sheet = width_sheet(bench, work, widths, case.spot)
    choice = _choice(case, need, sheet, widths, limit)
    asked = phase.width
    recommended = _recommend(choice, work, asked)
    requested = recommended if asked is None else asked
    return GpuSide(intent, need, legal, choice, sheet, asked, requested, recommended, limit)


def _choice(case: PhaseCase, need: Need, sheet: Sheet, widths: tuple[int, ...], limit: float) -> Choice:
    bench, work, least, cells = case.bench, case.work, _least(case.phase), sheet.cells
    able = survey(bench, need)
    feasible = frozenset(
        [w for w in widths if w >= least and w in able.possible and (w not in cells or cells[w].hours <= limit)]
    )
    return Choice(
        widths=widths,
        start=max(need.intent.base_gpus, work.group, least),
        least=max(need.intent.floor, work.group, least),
        cells=cells,
        feasible=feasible,
        admitted=feasible & able.admitted,
        policy=bench.policy,
    )


def _least(phase: Phase) -> int:
    """The narrowest machine that may start the phase: that of its arm that needs most."""
    own = phase.min_width or 0
    return max([own, *(arm.min_width or own for arm in phase.arms)]) if phase.arms else own


def _recommend(choice: Choice, work: Work, asked: int | None) -> int:
    """The asked width when it has no finding about width, else where the findings lead."""
    if asked is None or asked not in choice.widths:
        return choice.default()
    if asked not in choice.feasible:
        return choice.settle(_nearest(choice.feasible, asked))
    if asked not in choice.admitted and choice.admitted:
        return choice.settle(choice.granted(asked))
    usable = work.usable
    if usable is not None and asked > usable and (work.mode is Mode.SINGLE or work.fixed is not None):
        return min((w for w in choice.feasible if w >= usable), default=asked)
    return choice.settle(asked)


def _nearest(widths: frozenset[int], asked: int) -> int:
    """The next wider of some widths, else the next narrower one, else what was asked."""
    wider = [width for width in widths if width > asked]
    return min(wider) if wider else max(widths, default=asked)


def _phase_verdict(case: PhaseCase, held: int, chained: tuple[Finding, ...]) -> PhaseVerdict:
    gpu, phase = case.gpu, case.phase
    length, reason = _length(case)
    findings = (
        *intent_findings(case),
        *declaration_findings(case),
        *width_findings(case),
        *idle_findings(case, held),
        *chained,
        *(arm_findings(case) if phase.arms else ()),
        *(reload_findings(case) if case.work.reloads or case.work.mode is Mode.STATIC else ()),
        *(spot_findings(case) if length is Length.SHORT else ()),
        *command_findings(case),
    )
    judged = PhaseVerdict(
        name=phase.name,
        verdict=_verdict(findings),
        requested_width=case.width,
        recommended_width=gpu.recommended if gpu is not None else case.width,
        min_width=min(gpu.choice.least, gpu.requested) if gpu is not None else 0,
        binding=binding(case.work, gpu.choice, gpu.asked, gpu.recommended) if gpu is not None else "none",
        units=case.work.units,
        gpus_per_shard=case.work.group if gpu is not None else 0,
        widths=_rows(case),
        length=length,
        length_reason=reason,
        findings=findings,
        ladder=_ladder(case, short=length is Length.SHORT),
        economics=_economics(case),
    )
    rooms = case.bench.rooms
    if not rooms:
        return judged
    return judged.model_copy(update={"ladder": fit_rooms(judged.ladder, rooms, judged, case.bench.policy)})


def _economics(case: PhaseCase) -> Economics | None:
    """What holds at every width; the interval between checkpoints where the plan says what writing one takes."""
    if case.gpu is None:
        return None
    found = case.gpu.sheet.economics
    write = case.phase.checkpoint_write_minutes
    if found is None or write is None:
        return found
    minutes = round(daly_interval(write / 60, case.spot.mean) * 60, 1)
    return replace(found, checkpoint_minutes=minutes)


def _verdict(findings: Iterable[Finding]) -> Verdict:
    wrong = any(finding.severity is Severity.ERROR and finding.accepted is None for finding in findings)
    return Verdict.REVISE if wrong else Verdict.PASS


def _rows(case: PhaseCase) -> tuple[WidthRow, ...]:
    if case.gpu is not None:
        return case.gpu.sheet.rows
    if not case.without_gpu or case.phase.wall_minutes is None:
        return ()
    hours = round(case.phase.wall_minutes / 60, 4)
    return (WidthRow(width=0, wall_hours=hours, efficiency=1.0, stranded_gpus=0, shards=0, waves=1),)


def _length(case: PhaseCase) -> tuple[Length, str]:
    """Short or long, and why. Decided once, at the requested width, for the whole ladder."""
    limit, held = case.bench.policy.short_gpu_hours, _held_hours(case)
    if case.phase.spot_tolerant:
        return Length.SHORT, "spot_tolerant"
    unit = "GPU-hours" if case.gpu is not None else "hours"
    if held is None:
        return Length.LONG, f"{unit} unknown"
    if held <= limit:
        return Length.SHORT, f"{held:.4g} {unit} at width {case.width}, at most {limit:g}"
    return Length.LONG, f"{held:.4g} {unit} at width {case.width}, more than {limit:g}"


def _held_hours(case: PhaseCase) -> float | None:
    if case.gpu is not None:
        found = case.gpu.cell
        return None if found is None else found.hours * found.width
    return None if case.phase.wall_minutes is None else case.phase.wall_minutes / 60


def _ladder(case: PhaseCase, *, short: bool) -> tuple[Rung, ...]:
    gpu, bench = case.gpu, case.bench
    if gpu is None:
        return _cpu_ladder(case, short=short)
    if gpu.requested not in gpu.legal:
        return ()
    floor, feasible = max(gpu.choice.least, 1), gpu.choice.feasible
    return gpu_ladder(
        bench,
        gpu.need,
        Walk(
            widths=tuple(w for w in reversed(gpu.legal) if floor <= w <= gpu.requested and w in feasible),
            elsewhere=gpu.requested if gpu.requested in feasible else None,
            short=short,
            wide_short=short or _spot_if_resumable(case),
        ),
    )


def _spot_if_resumable(case: PhaseCase) -> bool:
    """Whether resumable work leads with spot on machines of more than one GPU."""
    if not case.bench.policy.spot_if_resumable or case.width <= 1:
        return False
    declared = case.phase.resumable
    return case.work.mode is Mode.UNITS if declared is None else declared


def _cpu_ladder(case: PhaseCase, *, short: bool) -> tuple[Rung, ...]:
    intent, bench = case.intent, case.bench
    if not case.without_gpu or (intent is None and case.phase.intent is not None):
        return ()
    if intent is None or intent.base_gpus > 0:
        return (local_rung(),)
    need = need_of(case.phase, intent)
    rungs = gcp_rungs(bench, need, 0, short=short) if GCP in survey(bench, need).lanes else ()
    return rungs or (local_rung(),)
