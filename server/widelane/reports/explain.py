"""The arithmetic of one phase in readable lines: how its wall clock and efficiency come about, and at which width."""

from __future__ import annotations

from collections.abc import Iterator

from widelane.models.plan import Phase
from widelane.models.verdict import PhaseVerdict, WidthRow
from widelane.reports.clean import clean_line
from widelane.reports.findings import verdict_word
from widelane.reports.paper import Paper, duration, plural

_LABEL = 12
_BAR = 40
_MARK = "#"

_BINDINGS = {
    "work": "the work itself: more GPUs would shorten it",
    "waves": "the last wave, which is not full",
    "longest_unit": "the longest unit: no width is quicker than it",
    "units": "the number of units: each has its GPUs already",
    "setup": "set-up, which every group does at the same time and no width shortens",
    "reload": "reloads, when a group goes on to another value of an axis",
    "tail": "the serial end, which no width shortens",
    "waiver": "what narrow_because says",
    "command": "the command, which uses no more GPUs",
}


def explanation(phase: Phase, verdict: PhaseVerdict, paper: Paper) -> str:
    """The arithmetic at the requested width, then bars over all widths. A phase without numbers says why."""
    head = f"{paper.paint(clean_line(phase.name), 'strong')}  {verdict_word(verdict.verdict, paper)}"
    row = next((row for row in verdict.widths if row.width == verdict.requested_width), None)
    if row is None or not row.width:
        return f"{head}\n  {_without_numbers(verdict)}\n"
    lines = [f"{head}  width {row.width}, recommended {verdict.recommended_width}"]
    for label, text in _steps(phase, verdict, row):
        lines += paper.wrap(text, f"  {label:{_LABEL}}", " " * (_LABEL + 2))
    return "\n".join([*lines, "", *_bars(verdict, paper)]) + "\n"


def _without_numbers(verdict: PhaseVerdict) -> str:
    if not verdict.requested_width:
        hours = verdict.widths[0].wall_hours if verdict.widths else None
        return "no GPU" if hours is None else f"no GPU; {duration(hours)}, as wall_minutes says"
    return "no numbers at this width: " + (
        ", ".join(finding.code.value for finding in verdict.findings) or "no estimate"
    )


def _steps(phase: Phase, verdict: PhaseVerdict, row: WidthRow) -> Iterator[tuple[str, str]]:
    setup, tail = phase.setup_minutes / 60, phase.tail_minutes / 60
    run = max(row.wall_hours - setup - tail, 0.0)
    yield "units", _units(phase, verdict)
    yield "work", _work(phase, verdict)
    yield "groups", _groups(verdict, row)
    if row.waves > 1 or row.fill < 1:
        places = row.shards * row.waves
        yield (
            "waves",
            (
                f"{verdict.units:,} units on {plural(row.shards, 'group')}: {plural(row.waves, 'wave')},"
                f" {verdict.units:,} of {places:,} places filled, {row.fill:.0%}"
            ),
        )
    yield (
        "wall clock",
        (
            f"{duration(setup)} set-up + {duration(run)} run + {duration(tail)} serial end"
            f" = {duration(row.wall_hours)}; waiting for a machine and its boot are not in it"
        ),
    )
    yield "bound by", _BINDINGS.get(row.binding, row.binding)
    if row.bound_hours:
        yield "at best", f"no order of the units takes less than {duration(row.bound_hours)} at this width"
    yield "efficiency", _efficiency(verdict, row)
    yield from _compared(verdict, row)


def _units(phase: Phase, verdict: PhaseVerdict) -> str:
    axes = " x ".join(f"{axis.name} {axis.size:,}" for axis in phase.axes or ())
    if phase.arms:
        axes = "of arms " + ", ".join(arm.name for arm in phase.arms)
    return clean_line(plural(verdict.units, "unit") + (f" = {axes}" if axes else ""))


def _work(phase: Phase, verdict: PhaseVerdict) -> str:
    found = verdict.economics
    group = plural(verdict.gpus_per_shard, "GPU")
    total = found.work_hours if found is not None else 0.0
    told = f"{total:.4g} h on one group of {group}"
    if found is not None and verdict.units > 1:
        even = phase.unit_minutes is None or not isinstance(phase.unit_minutes, tuple)
        mean = total / verdict.units
        told += f", {duration(mean)} a unit" if even else f", {duration(mean)} a unit on average"
        told += "" if even else f", {duration(found.longest_unit_hours)} the longest"
    return told


def _groups(verdict: PhaseVerdict, row: WidthRow) -> str:
    group = verdict.gpus_per_shard
    most = f"{row.width} GPUs / {group} a unit = {row.width // group}" if group else f"{row.width} GPUs"
    idle = f", {plural(row.stranded_gpus, 'GPU')} without a unit" if row.stranded_gpus else ""
    return f"{most}, of which {row.shards} work at once{idle}"


def _efficiency(verdict: PhaseVerdict, row: WidthRow) -> str:
    held = row.width * row.wall_hours
    useful = row.efficiency * held
    return (
        f"{useful:.4g} GPU-h of work / ({row.width} GPUs x {row.wall_hours:.4g} h held = {held:.4g} GPU-h)"
        f" = {row.efficiency:.0%}"
    )


def _compared(verdict: PhaseVerdict, row: WidthRow) -> Iterator[tuple[str, str]]:
    first, found = verdict.widths[0], verdict.economics
    before = next((one for one in reversed(verdict.widths) if one.width < row.width), None)
    if before is not None and before.wall_hours:
        share = (before.wall_hours - row.wall_hours) / before.wall_hours
        yield "gain", f"{row.saves_minutes:g} min less than width {before.width}, {share:.0%}"
    if found is not None and found.speedup_cap is not None and row.wall_hours and row is not first:
        yield (
            "speed-up",
            (
                f"{first.wall_hours / row.wall_hours:.1f} times as fast as width {first.width};"
                f" {found.speedup_cap:g} times one group is the most that any width gives"
            ),
        )
    if found is not None and found.saturation_width is not None:
        yield (
            "saturation",
            f"beyond {plural(found.saturation_width, 'GPU')} none has a unit, or set-up takes longer than work",
        )
    if row.static_hours is not None and row.static_hours > row.wall_hours:
        yield "dealt out", f"{duration(row.static_hours)} if the units were shared out before, instead of pulled"
    yield "on spot", "hardly ever ends" if row.spot_hours is None else f"{duration(row.spot_hours)} expected"
    if found is not None and found.checkpoint_minutes is not None:
        yield "checkpoint", f"one every {found.checkpoint_minutes:g} min loses least on spot"


def _bars(verdict: PhaseVerdict, paper: Paper) -> list[str]:
    longest = max((row.wall_hours for row in verdict.widths), default=0.0)
    room = min(_BAR, max(10, paper.columns - 50))

    def bar(share: float) -> str:
        return _MARK * max(1, round(share * room)) if share > 0 else ""

    rows = [
        (
            str(row.width),
            bar(row.wall_hours / longest if longest else 0.0),
            duration(row.wall_hours),
            _MARK * round(row.efficiency * 10),
            f"{row.efficiency:.0%}",
            "recommended" if row.width == verdict.recommended_width else "",
        )
        for row in verdict.widths
    ]
    return paper.table((">width", "wall clock", ">", "efficiency", ">", ""), rows)
