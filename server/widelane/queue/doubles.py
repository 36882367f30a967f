"""Jobs that are there twice: ids, which is a mistake, and contents, which may be one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from widelane.errors import Problem
from widelane.models.plan import Pointer
from widelane.plan.reading import Reading
from widelane.queue.expand import Made

_MOST = 20


def report_doubles(made: Sequence[Made], at: Reading) -> None:
    """Report ids that several jobs have, with both places."""
    first: dict[str, Made] = {}
    twice = 0
    for one in made:
        other = first.setdefault(one.job.id, one)
        if other is one:
            continue
        twice += 1
        if twice <= _MOST:
            line = _place(other.path, at)[0]
            message = f"The id `{one.job.id}` is here and in line {line}{_values(one, other)}."
            at.report_at(_id_path(one.path, at), "duplicate_id", message, "Give each job its own id.")
    if twice > _MOST:
        at.report_at((), "duplicate_id", f"{twice - _MOST:,} more ids are there twice.", "Mend the first ones.")


def equal_jobs(made: Sequence[Made], at: Reading) -> Iterator[Problem]:
    """Warnings about jobs with equal content under two ids."""
    first: dict[tuple[str, str], Made] = {}
    told = 0
    for one in made:
        other = first.setdefault((one.job.phase, one.job.digest), one)
        if other is one:
            continue
        told += 1
        if told <= _MOST:
            message = f"`{one.job.id}` is the same work as `{other.job.id}`."
            fix = "Remove one, or let the command name what makes them differ."
            yield Problem(at.sheet.origin, *_place(one.path, at), "equal_jobs", message, fix)
    if told > _MOST:
        yield Problem(at.sheet.origin, 1, 1, "equal_jobs", f"{told - _MOST:,} more jobs are the same as others.", "")


def _values(one: Made, other: Made) -> str:
    if not one.values or one.path != other.path:
        return ""
    return f", for {_told(other)} and {_told(one)}"


def _told(one: Made) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in one.values.items()) + "}"


def _id_path(path: Pointer, at: Reading) -> Pointer:
    return (*path, "id") if (*path, "id") in at.places else path


def _place(path: Pointer, at: Reading) -> tuple[int, int]:
    path = _id_path(path, at)
    while path and path not in at.places:
        path = path[:-1]
    return at.places.get(path, (1, 1))
