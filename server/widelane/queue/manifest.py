"""Text to manifest: read by the tables of keys, expanded, and every problem raised at once."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from yaml.nodes import MappingNode

from widelane.errors import PlanError, Problem
from widelane.models.queue import QueueJob
from widelane.plan.drafts import Draft
from widelane.plan.parse import text_of
from widelane.plan.reading import Reading, found
from widelane.plan.sheet import Sheet, plain_lines
from widelane.queue.doubles import equal_jobs, report_doubles
from widelane.queue.graph import Needs, PhaseNeeds, report_loops
from widelane.queue.header import Header, read_header
from widelane.queue.keys import MANIFEST
from widelane.queue.mask import composed
from widelane.queue.phases import read_phases
from widelane.queue.scalars import JOBS_LIMIT

ARGUMENT = "<manifest>"
"""Origin of a manifest that came as an argument."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest, expanded. `phases` and `header` are in the words of the runner's spec."""

    project: str
    lane: str
    header: Header
    phases: tuple[dict[str, Any], ...]
    jobs: tuple[QueueJob, ...]
    warnings: tuple[Problem, ...]
    origin: str
    folder: str | None
    """Folder of the file; None when the text came as an argument."""
    digest: str
    """Of the expanded whole."""


def parse(text: str, origin: str = ARGUMENT, folder: str | None = None, *, commandless: bool = False) -> Manifest:
    """Reads and expands a manifest. Raises PlanError with every problem.

    `commandless`: jobs may have no program, so that a grid can be looked at by itself.
    """
    sheet = Sheet(plain_lines(text), origin)
    reading = Reading(sheet)
    with _uncollected():
        manifest = _expanded(sheet, reading, folder, commandless)
    if manifest is None or reading.problems:
        told = {(problem.line, problem.column, problem.code, problem.message): problem for problem in reading.problems}
        raise PlanError(tuple(sorted(told.values(), key=lambda problem: (problem.line, problem.column))))
    return manifest


def read(path: str | Path) -> Manifest:
    """Reads a manifest from a UTF-8 file. Raises PlanError, also for a file that is missing, too large or no text."""
    file = Path(path)
    return parse(text_of(file, str(path)), str(path), str(file.parent.absolute()))


@contextmanager
def _uncollected() -> Generator[None, None, None]:
    """Without garbage collection, which would look through all that was read again and again and find nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _expanded(sheet: Sheet, reading: Reading, folder: str | None, commandless: bool) -> Manifest | None:
    root = composed(sheet)
    if not isinstance(root, MappingNode):
        what = "the text is empty" if root is None else f"found {found(root)}"
        fix = "Write YAML with `jobs`, `grid` or `phases`."
        raise PlanError((sheet.problem(0, 0, "no_manifest", f"There is no manifest here: {what}.", fix),))
    reading.mark((), root)
    draft = cast("Draft | None", MANIFEST.read(root, reading, ()))
    if draft is None:
        return None
    whole = not reading.problems
    header = read_header(draft.fields, reading)
    phases = read_phases(draft.fields, header, reading, commandless=commandless)
    complete = whole and not reading.problems
    made = [one for phase in phases for one in phase.made]
    if len(made) > JOBS_LIMIT:
        message = f"All phases together have {len(made):,} jobs."
        reading.report_at((), "too_many_jobs", message, f"A run has at most {JOBS_LIMIT:,} jobs.")
        return None
    report_doubles(made, reading)
    jobs = _connected([phase.needs for phase in phases], reading, complete)
    if complete and not made and not reading.problems and not any(phase.allow_empty for phase in phases):
        fix = "List them under `jobs`, or make them with `grid`."
        reading.report_at((), "no_jobs", "This manifest has no jobs.", fix)
    spec_phases = tuple(phase.spec for phase in phases)
    return Manifest(
        project=header.project,
        lane=header.lane,
        header=header,
        phases=spec_phases,
        jobs=tuple(jobs),
        warnings=tuple(equal_jobs(made, reading)),
        origin=sheet.origin,
        folder=folder,
        digest=_digest(header, spec_phases, jobs),
    )


def _connected(phases: Sequence[PhaseNeeds], reading: Reading, complete: bool) -> list[QueueJob]:
    needs = Needs(phases, reading, complete)
    jobs = [job for phase in phases for job in needs.of(phase)]
    if complete:
        report_loops(phases, jobs, reading)
    return jobs


def _digest(header: Header, phases: Sequence[dict[str, Any]], jobs: Sequence[QueueJob]) -> str:
    summed = hashlib.sha256(json.dumps([header.lane, header.spec, phases], sort_keys=True).encode())
    for job in jobs:
        rest = json.dumps(
            [job.id, job.phase, job.digest, [str(need) for need in job.needs], job.extras], sort_keys=True
        )
        summed.update(rest.encode())
    return summed.hexdigest()[:32]
