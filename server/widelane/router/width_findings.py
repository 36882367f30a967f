"""Findings about the width that is asked for, and about the machines that could give it."""

from __future__ import annotations

from collections.abc import Iterator

from widelane.models.verdict import Finding, FindingCode
from widelane.router.ladder import misfits
from widelane.router.phase_case import GpuSide, PhaseCase
from widelane.router.quota_findings import quota_denies, quota_unknown, quota_word
from widelane.router.work import Mode

_WIDTH = ("width",)


def width_findings(case: PhaseCase) -> Iterator[Finding]:
    """Every finding about the width of a GPU phase. One cause gives one finding."""
    gpu = case.gpu
    if gpu is None:
        return
    if gpu.requested not in gpu.legal:
        yield _off_ladder(case, gpu)
        return
    if case.phase.min_width is not None and case.phase.min_width > gpu.requested:
        yield _narrowest_off_ladder(case, gpu)
        return
    if gpu.requested % case.work.group:
        yield _bad_group(case, gpu)
        return
    impossible = (*_no_machine(case, gpu), *_run_limit(case, gpu))
    yield from impossible
    unsharded = _unsharded(case, gpu)
    denied = None if impossible else quota_denies(case, gpu)
    if unsharded is not None:
        yield unsharded
    if denied is not None:
        yield denied
    if unsharded is None and denied is None and not impossible:
        yield from _economics(case, gpu)
    yield from _cannot_reshard(case, gpu)
    if denied is None:
        yield from quota_unknown(case, gpu)


def _off_ladder(case: PhaseCase, gpu: GpuSide) -> Finding:
    legal = _listed(gpu.legal)
    return case.error(
        FindingCode.OFF_LADDER,
        _WIDTH,
        f"No machine of {gpu.intent.name} has {gpu.requested} GPUs; it comes with {legal}.",
        f"Ask for one of these widths: {legal}. The recommended one is {gpu.recommended}.",
        width=gpu.requested,
        legal=legal,
    )


def _narrowest_off_ladder(case: PhaseCase, gpu: GpuSide) -> Finding:
    least = case.phase.min_width or 0
    return case.error(
        FindingCode.OFF_LADDER,
        ("min_width",),
        f"min_width {least} is more than the width {gpu.requested}, so no machine may start it.",
        f"Set min_width to at most {gpu.requested}"
        + (f", or ask for {_listed([w for w in gpu.legal if w >= least])}." if least <= gpu.legal[-1] else "."),
        width=gpu.requested,
        min_width=least,
        legal=_listed(gpu.legal),
    )


def _bad_group(case: PhaseCase, gpu: GpuSide) -> Finding:
    group = case.work.group
    possible = [width for width in gpu.legal if width % group == 0]
    if possible:
        fix = f"Ask for a width of {_listed(possible)}, or change gpus_per_shard."
    else:
        fix = f"Set gpus_per_shard to a divisor of a width that there is ({_listed(gpu.legal)})."
    if case.phase.gpus_per_shard is None and case.work.fixed is not None:
        fix += " Or write {gpus} for the count in the command, so that it takes what it is given."
    return case.error(
        FindingCode.BAD_GROUP,
        ("width",) if case.phase.width is not None else ("gpus_per_shard",),
        f"Width {gpu.requested} is not a multiple of the {group} GPUs that one unit uses together:"
        f" {gpu.requested % group} would be idle.",
        fix,
        width=gpu.requested,
        gpus_per_shard=group,
    )


def _no_machine(case: PhaseCase, gpu: GpuSide) -> Iterator[Finding]:
    reasons = misfits(case.bench, gpu.need, gpu.requested)
    if not reasons:
        return
    fitting = sorted(gpu.choice.feasible)
    needs = case.phase.needs
    declared = {
        "gpu_mem_gib": needs.gpu_mem_gib,
        "ram_gib": needs.ram_gib,
        "disk_gib": needs.disk_gib,
    }
    if fitting:
        fix = f"Ask for width {_listed(fitting)}, whose machines hold it; or lower `needs` to what was measured."
    else:
        fix = "Lower `needs` to what was measured, change `pin` or the intent, or configure a lane with such a machine."
    yield case.error(
        FindingCode.DOES_NOT_FIT,
        ("pin",) if case.phase.pin is not None and not case.phase.needs.model_fields_set else ("needs",),
        f"No machine of width {gpu.requested} can be used: {'; '.join(reasons)}.",
        fix,
        width=gpu.requested,
        **{key: value for key, value in declared.items() if value is not None},
    )


def _run_limit(case: PhaseCase, gpu: GpuSide) -> Iterator[Finding]:
    cell = gpu.cell
    if cell is None or cell.hours <= gpu.limit_hours:
        return
    quick = [
        c.width for c in gpu.choice.cells.values() if c.hours <= gpu.limit_hours and c.width in gpu.choice.feasible
    ]
    if quick:
        fix = f"Ask for width {min(quick)} and set min_width to it."
    else:
        fix = "Split the phase along an axis into phases that each end in time."
    yield case.error(
        FindingCode.EXCEEDS_RUN_LIMIT,
        ("time_limit_hours",) if case.phase.time_limit_hours is not None else _WIDTH,
        f"At width {gpu.requested} it takes {cell.hours:.2f} h, and a machine may run for {gpu.limit_hours:g} h.",
        fix,
        width=gpu.requested,
        wall_hours=cell.hours,
        limit_hours=gpu.limit_hours,
    )


def _unsharded(case: PhaseCase, gpu: GpuSide) -> Finding | None:
    usable = case.work.usable
    single = case.work.mode is Mode.SINGLE or case.work.fixed is not None
    if not single or usable is None or gpu.requested <= usable:
        return None
    facts = case.work.parts[0].facts
    if case.work.fixed is not None:
        why = f"it starts {facts.launcher} with a count of {usable}"
        fix = f"Write {{gpus}} for that count, or ask for `width: {gpu.recommended}`."
    else:
        why = (
            "it names no axis, no {shard}, and is no launcher" if case.phase.command is not None else "no axis is named"
        )
        fix = f"Ask for `width: {gpu.recommended}`; or name the axes of independent work in `axes` and in the command."
    return case.error(
        FindingCode.UNSHARDED_WIDE,
        _WIDTH,
        f"Width {gpu.requested} holds {gpu.requested} GPUs, but the work uses {usable}: {why}.",
        fix,
        width=gpu.requested,
        usable=usable,
        idle_gpus=gpu.requested - usable,
    )


def _economics(case: PhaseCase, gpu: GpuSide) -> Iterator[Finding]:
    cell = gpu.cell
    if cell is None:
        return
    policy = case.bench.policy
    # The recommended width is settled: nothing wider pays there and nothing narrower is as fast.
    settled = gpu.requested == gpu.recommended
    wider = None if settled else gpu.choice.wider(gpu.requested)
    if wider is not None:
        yield case.error(
            FindingCode.NEEDLESSLY_NARROW,
            _WIDTH,
            f"Width {gpu.requested} takes {cell.hours:.2f} h; width {wider.width} takes {wider.hours:.2f} h"
            f" at {wider.efficiency:.0%} efficiency.",
            f"Ask for `width: {gpu.recommended}`; or say what keeps it narrow, with its number, in `narrow_because`.",
            width=gpu.requested,
            wall_hours=cell.hours,
            wider=wider.width,
            wider_wall_hours=wider.hours,
            saves_minutes=(cell.hours - wider.hours) * 60,
            wider_efficiency=wider.efficiency,
            quota=quota_word(case, gpu, wider.width),
        )
    narrower = None if settled else gpu.choice.narrower(gpu.requested)
    if narrower is not None:
        yield case.error(
            FindingCode.TOO_WIDE,
            _WIDTH,
            f"Width {narrower.width} takes {narrower.hours:.2f} h, width {gpu.requested} {cell.hours:.2f} h.",
            f"Ask for `width: {gpu.recommended}`, or split the work into more and smaller units.",
            width=gpu.requested,
            wall_hours=cell.hours,
            narrower=narrower.width,
            narrower_wall_hours=narrower.hours,
            ratio=narrower.hours / cell.hours if cell.hours else 1.0,
        )
        return
    if cell.efficiency < policy.min_efficiency:
        yield case.advice(
            FindingCode.LOW_EFFICIENCY,
            _WIDTH,
            f"At width {gpu.requested} the GPUs work for {cell.efficiency:.0%} of the time that they are held.",
            "Give each GPU more work after its set-up: larger units, or a smaller setup_minutes from a ready image.",
            width=gpu.requested,
            efficiency=cell.efficiency,
        )
    yield from _ragged(case, gpu)


def _ragged(case: PhaseCase, gpu: GpuSide) -> Iterator[Finding]:
    cell, units = gpu.cell, case.work.units
    if cell is None or case.work.mode is not Mode.UNITS or cell.waves < 2:
        return
    fill = units / (cell.shards * cell.waves)
    if fill >= case.bench.policy.ragged_wave_fill:
        return
    last = units - cell.shards * (cell.waves - 1)
    yield case.advice(
        FindingCode.RAGGED_WAVE,
        ("axes",),
        f"{units} units on {cell.shards} groups take {cell.waves} waves, and the last wave has {last}.",
        f"Split the units so that their number is a multiple of {cell.shards}.",
        units=units,
        shards=cell.shards,
        waves=cell.waves,
        fill=fill,
    )


def _cannot_reshard(case: PhaseCase, gpu: GpuSide) -> Iterator[Finding]:
    part, phase = case.work.parts[0], case.phase
    least = max(phase.min_width or 0, gpu.intent.floor)
    if part.mode is Mode.LAUNCHER and case.work.fixed is not None and phase.gpus_per_shard is None:
        count, word, holder = case.work.fixed, "GPUs", "{gpus}"
        broken = least < count <= gpu.requested
    elif part.mode is Mode.STATIC and part.facts.shards is not None:
        count, word, holder = part.facts.shards, "shards", "{shards}"
        broken = count * case.work.group != gpu.requested or least < gpu.requested
    else:
        return
    if broken:
        yield case.error(
            FindingCode.CANNOT_RESHARD,
            (*part.where, "command"),
            f"The command fixes {count} {word}, but its machine may have {max(least, 1)} to {gpu.requested} GPUs.",
            f"Write {holder} for the count; or set min_width to {gpu.requested}.",
            fixed=count,
            width=gpu.requested,
            min_width=least,
        )


def _listed(widths: tuple[int, ...] | list[int]) -> str:
    return ", ".join(str(width) for width in widths)
