"""Findings that are about what a phase declares, or about the phase before it."""

from __future__ import annotations

from collections.abc import Iterator

from widelane.models.nearest import nearest
from widelane.models.verdict import Finding, FindingCode
from widelane.router.phase_case import PhaseCase
from widelane.router.schedule import Reload, run_hours
from widelane.router.widths import pulled_hours
from widelane.router.work import Mode


def intent_findings(case: PhaseCase) -> Iterator[Finding]:
    """An intent that no table has, or none at all for GPU work."""
    name = case.phase.intent
    if case.intent is not None or (name is None and case.phase.gpus == 0):
        return
    known = case.bench.intents
    if name is None:
        message, guess = "The phase names no intent, so the GPU it needs is unknown.", None
    else:
        message, guess = f"{name} is no known intent.", nearest(name, known)
    fix = (
        f"Did you mean `intent: {guess}`?"
        if guess
        else f"Use one of {', '.join(known)}; or `gpus: 0` for an API phase."
    )
    numbers = {"intent": name or ""} | ({"instead": guess} if guess else {})
    yield case.error(FindingCode.INTENT_UNKNOWN, ("intent",), message, fix, **numbers)


def declaration_findings(case: PhaseCase) -> Iterator[Finding]:
    """What a GPU phase leaves unsaid: its estimate, its axes."""
    gpu = case.gpu
    if gpu is None:
        return
    if case.work.segments is None:
        minutes, numbers = case.phase.unit_minutes, {"units": case.work.units}
        if isinstance(minutes, tuple):
            numbers["listed"] = len(minutes)
            message = f"unit_minutes lists {len(minutes)} times for {case.work.parts[0].units} units."
            fix = "Give one number for all units, or one for each."
        else:
            message = "Neither gpu_hours nor unit_minutes is given, so no width can be judged."
            fix = "Add gpu_hours: the total on one reference GPU, measured on a small sample or cited."
        yield case.error(FindingCode.NO_ESTIMATE, ("unit_minutes",) if minutes else (), message, fix, **numbers)
        return
    serial = min(gpu.choice.cells.values(), key=lambda cell: cell.width, default=None)
    silence = case.bench.policy.axis_silence_hours
    if serial is None or serial.hours <= silence or not _is_silent(case):
        return
    yield case.error(
        FindingCode.AXIS_UNDECLARED,
        ("axes",),
        f"It takes {serial.hours:.2f} h at width {serial.width}, and neither names the axes it shards along"
        " nor says why it doesn't shard.",
        "Declare `axes:` with their sizes, or `axes: none` with `why:`.",
        wall_hours=serial.hours,
        limit_hours=silence,
    )


def idle_findings(case: PhaseCase, held: int) -> Iterator[Finding]:
    """A phase that keeps GPUs waiting: `held` is the width of the machine that it keeps from the phase before."""
    asked = case.phase.width
    if case.without_gpu and asked:
        yield case.error(
            FindingCode.IDLE_WIDTH,
            ("width",),
            f"The phase uses no GPU, but asks for {asked}.",
            "Take `width` out: it runs on the local lane or on a CPU machine.",
            width=asked,
            used=0,
        )
    limit = case.bench.policy.idle_minutes
    minutes = _minutes(case)
    if held <= case.width or (minutes is not None and minutes <= limit):
        return
    length = "for an unknown time" if minutes is None else f"for {minutes:.0f} min"
    numbers = {"held": held} if minutes is None else {"held": held, "minutes": minutes}
    yield case.error(
        FindingCode.IDLE_WIDTH,
        ("hold",),
        f"It keeps a machine of {held} GPUs {length} and uses {case.width}.",
        "Take `hold` out: the machine is let go, and this phase gets one of its own width.",
        width=held,
        used=case.width,
        **numbers,
    )


def arm_findings(case: PhaseCase) -> Iterator[Finding]:
    """Arms that may start on machines of different width, behind one request."""
    phase, gpu = case.phase, case.gpu
    if gpu is None or len(phase.arms) < 2:
        return
    own = phase.min_width or gpu.intent.floor
    least = {arm.name: max(arm.min_width or own, arm.gpus_per_shard or 1) for arm in phase.arms}
    narrow, wide = min(least, key=lambda name: least[name]), max(least, key=lambda name: least[name])
    if least[narrow] == least[wide]:
        return
    index = next(index for index, arm in enumerate(phase.arms) if arm.name == wide)
    yield case.error(
        FindingCode.MIN_WIDTH_MIXED,
        ("arms", index, "min_width" if phase.arms[index].min_width else "gpus_per_shard"),
        f"{narrow} could start on {least[narrow]} GPU{'s'[: least[narrow] - 1]},"
        f" but waits with {wide} for a machine of {least[wide]}.",
        f"Make {wide} a phase of its own with `min_width: {least[wide]}`.",
        narrowest=least[narrow],
        widest=least[wide],
    )


def reload_findings(case: PhaseCase) -> Iterator[Finding]:
    """Advice about the order of axes, and about a static split of unequal units."""
    gpu, work = case.gpu, case.work
    cell = gpu.cell if gpu is not None else None
    if cell is None or not work.segments:
        return
    worth = case.bench.policy.default_gain_minutes / 60
    if work.mode is Mode.STATIC and work.units > 1:
        saved = cell.run - max(pulled_hours(work, cell.shards), work.floor_hours)
        if saved >= worth:
            yield case.advice(
                FindingCode.STATIC_SPLIT,
                ("command",),
                f"Dealt out by {{shard}}, the units take {saved * 60:.0f} min longer than when each free group"
                " pulls the next.",
                "Name the axes in the command instead of {shard}: one unit for each value.",
                saves_minutes=saved * 60,
            )
    late = [reload for reload in work.reloads if reload.stride * reload.size < work.units]
    if late and len(work.segments) == 1:
        first = tuple(Reload(max(work.units // reload.size, 1), reload.size, reload.hours) for reload in late)
        saved = cell.run - max(run_hours(work.segments, cell.shards, first), work.floor_hours)
        if saved >= worth:
            names = [name for name, _ in case.phase.reload_minutes]
            yield case.advice(
                FindingCode.RELOAD_ORDER,
                ("axes",),
                f"Units are pulled with the last axis varying fastest, so that {', '.join(names)} reload"
                f" {saved * 60:.0f} min more often than needed.",
                f"Put {', '.join(names)} first in `axes`.",
                saves_minutes=saved * 60,
            )


def spot_findings(case: PhaseCase) -> Iterator[Finding]:
    """Advice that a preemption would lose more than it should, for work that leads with spot."""
    gpu, work, mean = case.gpu, case.work, case.bench.policy.spot_mean_hours
    cell = gpu.cell if gpu is not None else None
    if cell is None or work.checkpoint is not None:
        return
    spread = work.mode in (Mode.UNITS, Mode.STATIC) and work.units > 1 and not work.restarts
    longest = max([hours for _, hours in work.segments or ()], default=0.0) if spread else cell.run
    if longest <= mean / 2:
        return
    yield case.advice(
        FindingCode.SPOT_UNITS_LONG,
        ("unit_minutes",),
        f"A unit takes {longest:.2f} h and is lost whole with its machine, which spot takes every {mean:g} h"
        " on average.",
        "Split it into shorter units, or write checkpoints and say so with `checkpoint_minutes`.",
        unit_hours=longest,
        spot_mean_hours=mean,
    )


def _is_silent(case: PhaseCase) -> bool:
    """Whether a part neither shards nor says that nothing does."""
    return any(
        part.mode is Mode.SINGLE and (part.axes is None or (part.axes == () and not case.phase.why))
        for part in case.work.parts
    )


def _minutes(case: PhaseCase) -> float | None:
    """Wall clock of the phase; None when it isn't known."""
    if case.gpu is not None:
        cell = case.gpu.cell
        return None if cell is None else cell.hours * 60
    return case.phase.wall_minutes
