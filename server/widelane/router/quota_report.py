"""The answer of quota_check: which rungs the project's quotas admit, by region, and what binds."""

from __future__ import annotations

from collections.abc import Iterable

from widelane.errors import InputError
from widelane.models.nearest import nearest
from widelane.models.plan import ParsedPlan, Phase, ProvisioningModel
from widelane.models.quota import Admits, PoolQuota, QuotaBinding, QuotaReport, RungQuota
from widelane.models.verdict import Rung
from widelane.router.admission import region_answers, region_of
from widelane.router.bench import GCP, Bench
from widelane.router.judge import judge
from widelane.router.ladder import gcp_rungs, legal_widths, need_of

QUEUES = "Flex-start that quota denies is not asked for: the service would accept it and let it wait in vain."
NO_QUOTAS = "No quotas were given: every rung is unknown and would be tried once."


def quota_report(
    bench: Bench, *, plan: ParsedPlan | None = None, intent: str | None = None, width: int | None = None
) -> QuotaReport:
    """Rungs of a plan, or of an intent at a width and below (absent: its widest). Raises InputError for neither."""
    if plan is not None:
        ladders = [phase.ladder for phase in judge(plan, bench).phases]
        rungs = tuple(dict.fromkeys((r.machine_type, r.provisioning_model) for ladder in ladders for r in ladder))
        by_key = {(r.machine_type, r.provisioning_model): r for ladder in ladders for r in ladder if r.lane == GCP}
        return _report(bench, [by_key[key] for key in rungs if key in by_key])
    if intent is None:
        raise InputError("give a plan, or an intent with a width", hint=f"intents: {', '.join(bench.intents)}")
    return _report(bench, _intent_rungs(bench, intent, width))


def _intent_rungs(bench: Bench, name: str, width: int | None) -> list[Rung]:
    intent = bench.intents.get(name)
    if intent is None:
        guess = nearest(name, bench.intents)
        hint = f'did you mean "{guess}"?' if guess else f"intents: {', '.join(bench.intents)}"
        raise InputError(f"{name} is no known intent", hint=hint, code="intent_unknown")
    legal = legal_widths(bench, intent)
    asked = legal[-1] if width is None else width
    if asked not in legal:
        hint = f"ask for {', '.join(map(str, legal))}"
        raise InputError(f"no machine of {name} has {asked} GPUs", hint=hint, code="off_ladder")
    need = need_of(Phase(name="quota", intent=name), intent)
    return [rung for w in reversed(legal) if w <= asked for rung in gcp_rungs(bench, need, w, short=True)]


def _report(bench: Bench, rungs: Iterable[Rung]) -> QuotaReport:
    snapshot = bench.quotas
    rows = [row for rung in rungs for row in _rows(bench, rung)]
    return QuotaReport(
        project=snapshot.project if snapshot is not None else "",
        taken_at=snapshot.taken_at if snapshot is not None else "",
        largest_width=max((row.width for row in rows if row.admits is Admits.YES), default=0),
        largest_possible_width=max((row.width for row in rows if row.admits is not Admits.NO), default=0),
        rungs=tuple(rows),
        note=_note(rows) if snapshot is not None else NO_QUOTAS,
        pools=_pools(rows),
    )


def _note(rows: list[RungQuota]) -> str:
    """What is left out, where it would not be refused at once."""
    queued = [r for r in rows if r.admits is Admits.NO and r.provisioning_model is ProvisioningModel.FLEX_START]
    return QUEUES if queued else ""


def _pools(rows: list[RungQuota]) -> tuple[PoolQuota, ...]:
    """The largest width of each region and pool, in the order of the rows."""
    found: dict[tuple[str, str], list[RungQuota]] = {}
    for row in rows:
        pool = "standard" if row.provisioning_model is ProvisioningModel.STANDARD else "preemptible"
        found.setdefault((row.region, pool), []).append(row)
    return tuple(
        PoolQuota(
            region=region,
            pool=pool,
            largest_width=max((row.width for row in own if row.admits is Admits.YES), default=0),
            largest_possible_width=max((row.width for row in own if row.admits is not Admits.NO), default=0),
        )
        for (region, pool), own in found.items()
    )


def _rows(bench: Bench, rung: Rung) -> list[RungQuota]:
    """One row a region, in the order of the zones."""
    if bench.quotas is None:
        regions = dict.fromkeys(region_of(zone) for zone in rung.zones)
        return [_row(rung, Admits.UNKNOWN, None, region) for region in regions]
    answers = region_answers(rung, bench.quotas, bench)
    return [_row(rung, answer.admits, answer.binding, region) for region, answer in answers.items()]


def _row(rung: Rung, admits: Admits, binding: QuotaBinding | None, region: str) -> RungQuota:
    return RungQuota(
        machine_type=rung.machine_type,
        width=rung.width,
        provisioning_model=rung.provisioning_model,
        admits=admits,
        binding=binding,
        region=region,
    )
