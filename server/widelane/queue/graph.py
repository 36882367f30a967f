"""What waits for what: names that must exist, jobs with the same values, and loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from widelane.models.nearest import nearest
from widelane.models.plan import Pointer
from widelane.models.queue import Need, QueueJob
from widelane.plan.reading import Reading, named
from widelane.queue.expand import Made
from widelane.queue.needs import WrittenNeed
from widelane.queue.text import report_place

_MOST = 20
"""Mistakes of one kind that are told one by one."""
_MOST_NEEDS = 3_000_000
_SHOWN_LOOP = 8


@dataclass(frozen=True, slots=True)
class PhaseNeeds:
    """A phase with its place, its jobs, and what all of them wait for."""

    name: str
    path: Pointer
    made: Sequence[Made]
    needs: tuple[WrittenNeed, ...]


class Needs:
    """Turns what is written into jobs and phases by name."""

    def __init__(self, phases: Sequence[PhaseNeeds], at: Reading, complete: bool) -> None:
        """`complete`: nothing that could be needed is missing because it could not be read."""
        self._phases = {phase.name: phase for phase in phases}
        self._ids = {made.job.id for phase in phases for made in phase.made}
        self._at = at
        self._complete = complete
        self._index: dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], list[str]]] = {}
        self._told = 0
        self._total = 0

    def of(self, phase: PhaseNeeds) -> Iterator[QueueJob]:
        """The jobs of a phase with their needs."""
        common = [need for need in phase.needs if need.match is None]
        shared = self._resolved(common, None, phase.name)
        own = [need for need in phase.needs if need.match is not None]
        for made in phase.made:
            needs = self._resolved([*own, *made.needs], made, phase.name)
            yield replace(made.job, needs=tuple(dict.fromkeys([*shared, *needs])))

    def _resolved(self, needs: Iterable[WrittenNeed], made: Made | None, phase: str) -> list[Need]:
        found: list[Need] = []
        for need in needs:
            name = str(need.name.fill(made.values if made is not None else {})).strip()
            if need.match is not None and made is not None:
                found += self._matching(need, name, made)
            elif need.is_phase:
                found += self._phase(need, name, phase)
            elif name in self._ids:
                found.append(Need(name, False, need.when))
            else:
                self._unknown_job(need, name)
        self._total += len(found)
        return found

    def _phase(self, need: WrittenNeed, name: str, own: str) -> list[Need]:
        if name in self._phases:
            if name == own:
                self._report(need, "cycle", f"The phase `{name}` waits for itself.", "Remove it.")
                return []
            return [Need(name, True, need.when)]
        if self._complete:
            guess = nearest(name, [known for known in self._phases if known != own])
            fix = f"Did you mean `{guess}`?" if guess else "Name a phase of this manifest, or remove it."
            self._report(need, "unknown_phase", f"There is no phase {named(name)}.", fix)
        return []

    def _unknown_job(self, need: WrittenNeed, name: str) -> None:
        if not self._complete:
            return
        if name in self._phases:
            fix = f"Write `phase:{name}` for the phase."
        else:
            guess = nearest(name, self._ids) if self._told < _MOST else None
            fix = f"Did you mean `{guess}`?" if guess else "Name a job of this manifest, or a phase as `phase:NAME`."
        self._report(need, "unknown_job", f"There is no job {named(name)}.", fix)

    def _matching(self, need: WrittenNeed, name: str, made: Made) -> list[Need]:
        assert need.match is not None, "only needs with `match` come here"
        if name not in self._phases:
            return self._phase(need, name, "")
        lacking = [key for key in need.match if key not in made.values]
        index = self._indexed(name, need.match)
        if lacking or index is None:
            whose = made.job.phase if lacking else name
            key = lacking[0] if lacking else need.match[0]
            message = f"`match` names {named(key)}, which jobs of `{whose}` have no value for."
            self._report(need, "unknown_key", message, "Name keys that both phases have.")
            return []
        values = tuple(made.values[key] for key in need.match)
        found = index.get(values)
        if found is None:
            told = ", ".join(f"{key}={value}" for key, value in zip(need.match, values, strict=True))
            message = f"`{made.job.id}` needs a job of `{name}` with {told}, and there is none."
            self._report(need, "no_match", message, f"Add it to `{name}`, or leave this combination out.")
            return []
        if self._total + len(found) > _MOST_NEEDS:
            self._report(need, "too_many_needs", f"Over {_MOST_NEEDS:,} pairs of jobs.", "Need the whole phase.")
            return []
        return [Need(ident, False, need.when) for ident in found if ident != made.job.id]

    def _indexed(self, phase: str, keys: tuple[str, ...]) -> Mapping[tuple[str, ...], list[str]] | None:
        """Ids of a phase by their values of these keys; None when no job has them."""
        if (phase, keys) not in self._index:
            known: dict[tuple[str, ...], list[str]] = {}
            for made in self._phases[phase].made:
                if all(key in made.values for key in keys):
                    known.setdefault(tuple(made.values[key] for key in keys), []).append(made.job.id)
            self._index[phase, keys] = known
        return self._index[phase, keys] or None

    def _report(self, need: WrittenNeed, code: str, message: str, fix: str) -> None:
        self._told += 1
        if self._told <= _MOST:
            self._at.report(need.node, code, message, fix)


def report_loops(phases: Sequence[PhaseNeeds], jobs: Sequence[QueueJob], at: Reading) -> None:
    """One report for each loop: of phases by their names, of single jobs by their ids."""
    places: dict[str, tuple[int, int]] = {}
    waits: dict[str, list[str]] = {}
    for phase in phases:
        # A colon can't be in a job's id, so phases and jobs share one space of names.
        waits[f"phase:{phase.name}"] = [made.job.id for made in phase.made]
        places[f"phase:{phase.name}"] = at.places.get((*phase.path, "name"), (1, 1))
    lines = {made.job.id: made.path for phase in phases for made in phase.made}
    for job in jobs:
        waits[job.id] = [f"phase:{need.name}" if need.is_phase else need.name for need in job.needs]
    for loop in _loops(waits):
        of_phases = [name for name in loop if name.startswith("phase:")]
        shown = of_phases or loop
        placed = [(name, places.get(name) or at.places.get(lines.get(name, ()), (1, 1))) for name in shown]
        _report_loop([(name.removeprefix("phase:"), place) for name, place in placed], bool(of_phases), at)


def _report_loop(loop: list[tuple[str, tuple[int, int]]], of_phases: bool, at: Reading) -> None:
    start = min(range(len(loop)), key=lambda number: loop[number][1])
    loop = [*loop[start:], *loop[:start], loop[start]]
    told = [f"{name} (line {line})" for name, (line, _) in loop[:-1]]
    if len(told) > _SHOWN_LOOP:
        told = [*told[: _SHOWN_LOOP // 2], "...", *told[-_SHOWN_LOOP // 2 :]]
    what = "phases" if of_phases else "jobs"
    message = f"These {len(loop) - 1} {what} wait for each other: {' -> '.join([*told, loop[0][0]])}."
    report_place(at, loop[0][1], "cycle", message, f"Remove one of them from what `{loop[-2][0]}` waits for.")


def _loops(waits: Mapping[str, list[str]]) -> Iterator[list[str]]:
    """Loops that share no node, by depth-first search without recursion."""
    done: set[str] = set()
    for start in waits:
        if start in done:
            continue
        trail, stack = {start: 0}, [(start, iter(waits[start]))]
        while stack:
            name, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                done.add(name)
                del trail[name]
                stack.pop()
            elif following in trail:
                loop = [step for step, _ in stack[trail[following] :]]
                yield loop
                # One loop a search: what hangs together with it is told once.
                done.update(trail)
                break
            elif following not in done and following in waits:
                trail[following] = len(stack)
                stack.append((following, iter(waits[following])))
