from __future__ import annotations

from collections.abc import Callable

import pytest

from widelane import plan
from widelane.errors import PlanError, Problem
from widelane.models.plan import Phase

Refused = Callable[..., list[Problem]]
ReadPhase = Callable[[str], Phase]


@pytest.fixture
def refused() -> Refused:
    """Parses a text that must be refused; the problems in order."""

    def parse(text: str, origin: str = "<argument>") -> list[Problem]:
        with pytest.raises(PlanError) as caught:
            plan.parse(text, origin)
        return list(caught.value.problems)

    return parse


@pytest.fixture
def read_phase() -> ReadPhase:
    """Parses the keys of one phase, one a line, and gives the phase."""

    def read(keys: str) -> Phase:
        lines = "".join(f"    {line}\n" for line in keys.splitlines())
        return plan.parse(f"widelane: 1\nphases:\n  - name: only\n{lines}").plan.phases[0]

    return read
