from __future__ import annotations

from collections.abc import Callable

import pytest

from widelane.errors import PlanError, Problem
from widelane.models.queue import QueueJob
from widelane.queue import manifest
from widelane.queue.manifest import Manifest

Refused = Callable[..., list[Problem]]
ReadJobs = Callable[[str], dict[str, QueueJob]]


@pytest.fixture
def refused() -> Refused:
    """Parses a manifest that must be refused; the problems in order."""

    def parse(text: str, origin: str = "m.yaml") -> list[Problem]:
        with pytest.raises(PlanError) as caught:
            manifest.parse(text, origin)
        return list(caught.value.problems)

    return parse


@pytest.fixture
def jobs() -> ReadJobs:
    """The jobs of a manifest by their ids."""

    def parse(text: str) -> dict[str, QueueJob]:
        return {job.id: job for job in manifest.parse(text).jobs}

    return parse


@pytest.fixture
def read() -> Callable[[str], Manifest]:
    return manifest.parse
