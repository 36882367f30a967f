"""Which phase of a plan is explained, and where its picture goes."""

from __future__ import annotations

from pathlib import Path

from widelane.errors import InputError, NotFoundError
from widelane.models.nearest import nearest
from widelane.models.plan import ParsedPlan, Phase
from widelane.models.verdict import PhaseVerdict, PlanVerdict


def explained(parsed: ParsedPlan, verdict: PlanVerdict, name: str | None) -> tuple[Phase, PhaseVerdict]:
    """The phase of that name; without a name the only one, or the only one that has numbers.

    Raises:
        NotFoundError: no phase has that name.
        InputError: there is more than one to choose from.
    """
    pairs = list(zip(parsed.plan.phases, verdict.phases, strict=True))
    names = [phase.name for phase, _ in pairs]
    if name is not None:
        found = next((pair for pair in pairs if pair[0].name == name), None)
        if found is None:
            guess = nearest(name, names)
            raise NotFoundError(
                f"the plan has no phase {name}",
                hint=f"did you mean {guess}?" if guess else f"phases: {', '.join(names)}",
            )
        return found
    wide = [pair for pair in pairs if pair[1].widths and pair[1].requested_width] if len(pairs) > 1 else pairs
    if len(wide) != 1:
        choices = ", ".join(phase.name for phase, _ in wide or pairs)
        raise InputError("the plan has more than one phase to explain", hint=f"name one with --phase: {choices}")
    return wide[0]


def write_picture(path: Path, text: str) -> None:
    """Write a picture to a file. Raises InputError where that can't be."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path} can't be written: {error.strerror}", hint="name a file that can be written"
        ) from error
