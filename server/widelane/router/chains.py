"""Findings about two phases in series: one that waits for another without taking anything from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from widelane.models.plan import Command, Phase, Pointer
from widelane.models.verdict import Finding, FindingCode
from widelane.router.commands import words_of
from widelane.router.phase_case import PhaseCase
from widelane.router.schedule import run_hours
from widelane.router.work import Mode

_GLOB = re.compile(r"[{*?\[]")
_DIGITS = re.compile(r"\d+")
_COLLECTS = 64
"""A phase that waits for more phases than this collects them; it is no link of a chain."""


def chain_findings(case: PhaseCase, places: Mapping[str, int], other: Callable[[int], PhaseCase]) -> Iterator[Finding]:
    """Findings about what this phase waits for. `other` gives the case of the phase at an index."""
    phase = case.phase
    if len(phase.after) > _COLLECTS:
        return
    waited: list[tuple[Pointer, int | None]] = [
        (("after", number), places.get(name)) for number, name in enumerate(phase.after)
    ]
    if phase.hold and not phase.after and case.index:
        waited.append((("hold",), case.index - 1))
    for at, index in waited:
        if index is not None and index != case.index and not _takes(phase, case.plan.phases[index]):
            yield from _independent(case, other(index), at)


def _independent(case: PhaseCase, before: PhaseCase, at: Pointer) -> Iterator[Finding]:
    """Two phases of which the later takes nothing from the earlier."""
    saved = _saved_as_one(case, before)
    if saved is not None:
        policy = case.bench.policy
        worth = saved >= policy.default_gain_minutes / 60
        yield (case.error if worth else case.advice)(
            FindingCode.WAVE_BARRIER,
            at,
            f"It runs the same command as {before.phase.name} on other values and takes nothing from it, but waits for"
            f" its last unit: as one phase both take {saved * 60:.0f} min less.",
            f"Make {before.phase.name} and {case.phase.name} one phase with the values of both in one axis;"
            " or name what it reads of the other in `inputs`.",
            saves_minutes=saved * 60,
            before=before.phase.name,
        )
        return
    limit, first, second = case.bench.policy.chained_hours, _hours(before), _hours(case)
    if first is None or second is None or min(first, second) <= limit:
        return
    where = "`hold` out" if at == ("hold",) else f"{before.phase.name} out of `after`"
    yield case.error(
        FindingCode.CHAINED_INDEPENDENT,
        at,
        f"It waits for {before.phase.name} and takes nothing from it: {first:.2f} h and {second:.2f} h one after"
        f" the other instead of {max(first, second):.2f} h side by side.",
        f"Take {where}; or name what it reads of {before.phase.name} in `inputs`.",
        before=before.phase.name,
        hours_before=first,
        hours=second,
        saves_minutes=min(first, second) * 60,
    )


def _takes(phase: Phase, before: Phase) -> bool:
    """Whether a phase names anything that the earlier one writes; also when nothing says what that is."""
    written = (*before.outputs, *before.merge_outputs, *(path for arm in before.arms for path in arm.outputs))
    roots = {_GLOB.split(path, maxsplit=1)[0] for path in written}
    if not roots or "" in roots:
        return True
    text = "\0".join(_read_words(phase))
    return any(_names(text, root) for root in roots)


def _names(text: str, root: str) -> bool:
    """Whether a text names a path, something below it, or a folder above it."""
    parts = [part for part in root.rstrip("/").split("/") if part not in ("", ".")]
    for depth in range(1, len(parts) + 1):
        path = re.escape("/".join(parts[:depth]))
        beyond = r"(?![\w-])" if depth == len(parts) and root.endswith("/") else r"(?!/?[\w.*{-])"
        if depth == len(parts) and not root.endswith("/"):
            beyond = ""
        if re.search(rf"(?<![\w.-]){path}{beyond}", text):
            return True
    return False


def _read_words(phase: Phase) -> Iterator[str]:
    """Every word that may name a file that the phase reads."""
    commands: list[Command | None] = [phase.command, phase.setup, phase.merge, *(arm.command for arm in phase.arms)]
    for command in commands:
        if command is not None:
            yield from _words(command)
    yield from phase.inputs
    yield from (value for _, value in phase.env)
    yield phase.workdir or ""


def _words(command: Command) -> list[str]:
    try:
        return words_of(command)
    except ValueError:
        return [str(command)]


def _saved_as_one(case: PhaseCase, before: PhaseCase) -> float | None:
    """Hours that one phase with the units of both would save; None when they aren't the same work."""
    if case.gpu is None or before.gpu is None or case.work.mode is not Mode.UNITS or before.work.mode is not Mode.UNITS:
        return None
    if not _same_words(case.phase, before.phase) or case.work.group != before.work.group:
        return None
    one, two = before.gpu.cell, case.gpu.cell
    first, second = before.work.segments, case.work.segments
    if one is None or two is None or not first or not second:
        return None
    groups = max(1, min(max(one.width, two.width) // case.work.group, before.work.units + case.work.units))
    if len(first) == len(second) == 1 and first[0][1] == second[0][1]:
        joint = run_hours(((first[0][0] + second[0][0], first[0][1]),), groups)
    else:
        joint = run_hours((*first, *second), groups)
    fixed = max(before.work.setup, case.work.setup) + max(before.work.tail, case.work.tail)
    return max(one.hours + two.hours - fixed - joint, 0.0)


def _same_words(phase: Phase, before: Phase) -> bool:
    """Whether two commands differ in numbers only."""
    if phase.command is None or before.command is None or phase.intent != before.intent:
        return False
    mine, other = (_DIGITS.sub("#", "\0".join(_words(one.command or ""))) for one in (phase, before))
    return mine == other


def _hours(case: PhaseCase) -> float | None:
    if case.gpu is not None:
        return None if case.gpu.cell is None else case.gpu.cell.hours
    return None if case.phase.wall_minutes is None else case.phase.wall_minutes / 60
