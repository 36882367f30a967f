"""What the sources are filled with: every value of a table stands in a code span, so that a check can find it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from widelane import router
from widelane.models.plan import Axis, Marks, ParsedPlan, Phase, Plan

if TYPE_CHECKING:
    from widelane.facts import Catalog, Policy
    from widelane.models.catalog import Intent
    from widelane.models.verdict import Rung
    from widelane.router import Bench

_LADDER_INTENT = "capture-7b"


def values(catalog: Catalog, policy: Policy) -> dict[str, str]:
    """Every value that a source may name."""
    bench = router.Bench(catalog=catalog, policy=policy, intents=catalog.intents)
    return {
        "widths": _list(policy.widths),
        "lanes": _list(policy.lane_order),
        "paid_lanes": _list(policy.paid_lanes),
        "last_resort_lanes": _list(policy.last_resort_lanes),
        "last_resort_width": f"`{policy.last_resort_width}`",
        "workload_failover": f"`{policy.workload_failover}`",
        "models_long": _list(policy.long_order),
        "models_short": _list(policy.short_order),
        "short_gpu_hours": _number(policy.short_gpu_hours),
        "double_minutes": _number(policy.default_gain_minutes, " min"),
        "double_percent": _percent(policy.default_gain_share),
        "least_efficiency": _number(policy.min_efficiency),
        "narrow_percent": _percent(policy.narrow_saving_share),
        "narrow_minutes": _number(policy.narrow_saving_minutes, " min"),
        "wide_factor": _number(policy.too_wide_ratio),
        "axis_hours": _number(policy.axis_silence_hours, " h"),
        "idle_minutes": _number(policy.idle_minutes, " min"),
        "queue_wait": _number(policy.flex_wait_seconds, " s"),
        "walk_wait": _number(policy.total_wait_seconds, " s"),
        "attempt_cap": _number(policy.walks_per_day),
        "intents_table": _intents(bench),
        "ladder_intent": f"`{_LADDER_INTENT}`",
        "ladder_width": _number(max(policy.widths)),
        "ladder_long": _ladder(bench, gpu_hours=None),
        "ladder_short": _ladder(bench, gpu_hours=policy.short_gpu_hours / 2),
    }


def _number(value: float, unit: str = "") -> str:
    return f"`{value:g}{unit}`"


def _percent(share: float) -> str:
    return f"`{share * 100:g} %`"


def _list(words: Iterable[object]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _intents(bench: Bench) -> str:
    head = (
        "| intent | GPUs at its base width | narrowest | GiB a GPU | machines at the base width | at other widths |",
        "|---|---|---|---|---|---|",
    )
    return "\n".join((*head, *(_intent(intent, bench) for intent in bench.intents.values())))


def _intent(intent: Intent, bench: Bench) -> str:
    widths = bench.policy.widths
    base = _machines(intent.base_families, (intent.base_gpus,), bench)
    other = _machines(intent.wide_families, tuple(width for width in widths if width > intent.base_gpus), bench)
    narrow = tuple(width for width in widths if intent.floor <= width < intent.base_gpus)
    other += _machines(intent.base_families, narrow, bench)
    numbers = (_number(intent.base_gpus), _number(intent.floor), _number(intent.gpu_mem_gib))
    cells = (f"`{intent.name}`", *numbers, _list(base) or "none", _list(other) or "none")
    return f"| {' | '.join(cells)} |"


def _machines(families: tuple[str, ...], widths: tuple[int, ...], bench: Bench) -> list[str]:
    """The smallest machine of each family at each width, as a ladder has them."""
    found: list[str] = []
    for width in widths:
        for machines in bench.machines(families, width):
            rules = [(machine.name, bench.policy.rung_rules.get(machine.family)) for machine in machines]
            found += [name for name, rule in rules if rule is None or width in rule.widths][:1]
    return found


def _ladder(bench: Bench, gpu_hours: float | None) -> str:
    """The rungs of one request, as a numbered list. Work of unknown length counts as long."""
    work = Phase(
        name="work",
        intent=_LADDER_INTENT,
        axes=(Axis(name="unit", size=64),),
        gpu_hours=gpu_hours,
        width=max(bench.policy.widths),
        min_width=1,
        command="run {unit}",
        outputs=("{unit}.json",),
    )
    verdict = router.judge(ParsedPlan(Plan(widelane=1, phases=(work,)), Marks({}), "", None), bench)
    return "\n".join(f"{place}. {_rung(rung)}" for place, rung in enumerate(verdict.phases[0].ladder, 1))


def _rung(rung: Rung) -> str:
    if not rung.zones:
        return f"`{rung.lane}`, width `{rung.width}`"
    return f"`{rung.machine_type}`, `{rung.provisioning_model.value}`"
