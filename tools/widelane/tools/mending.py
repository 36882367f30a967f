"""Mends a plan's file: what its findings make plain is changed in it, and nothing else of it."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from widelane.errors import InputError
from widelane.models.verdict import PlanVerdict
from widelane.tools.given import PlanGiven

if TYPE_CHECKING:
    from widelane.tools.desk import Desk

_ROUNDS = 4
"""A mended intent brings its widths into view, whose findings can be mended in turn."""


@dataclass(frozen=True, slots=True)
class Mended:
    """The verdict on the plan as it reads now, and the paths of the keys that were changed."""

    verdict: PlanVerdict
    changed: tuple[str, ...]


def mend_file(plan_path: str, desk: Desk) -> Mended:
    """Judge the plan in a file and change what its findings make plain, until there is nothing left to change.

    Raises:
        PlanError: every problem of the text; it is left as it is.
        InputError: the file can't be written.
    """
    from widelane import plan, router  # noqa: PLC0415 - as in `Desk`, loaded at the first call

    path, given = desk.path(plan_path), PlanGiven(plan_path=plan_path)
    parsed, verdict = desk.judged(given)
    changed: dict[str, None] = {}
    for _ in range(_ROUNDS):
        mends = router.mends(parsed, verdict)
        before = path.read_bytes().decode("utf-8") if mends else ""
        after = plan.mended(before, parsed.origin, mends)
        if after == before:
            break
        _write(path, after.encode("utf-8"))
        changed |= dict.fromkeys(_named(parsed.plan.phases[int(mend.path[1])].name, mend.path) for mend in mends)
        parsed, verdict = desk.judged(given)
    return Mended(verdict, tuple(changed))


def _write(path: Path, data: bytes) -> None:
    """Write all of a file or nothing of it."""
    target = path.resolve()
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}-", delete=False) as file:
            file.write(data)
        shutil.copymode(target, file.name)
        Path(file.name).replace(target)
    except OSError as error:
        raise InputError(f"{path} can't be written: {error.strerror}", hint="make its folder writable") from error


def _named(phase: str, path: tuple[str | int, ...]) -> str:
    """`generate.width`."""
    return ".".join([phase, *map(str, path[2:])])
