from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.simworld import Cloud


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Callable[[str], Cloud]]:
    """`cloud(scenario text)`: a simulated cloud inside the test."""
    made: list[Cloud] = []

    def build(scenario: str) -> Cloud:
        folder = tmp_path / f"cloud{len(made)}"
        folder.mkdir()
        made.append(Cloud(scenario, folder))
        return made[-1]

    yield build
    for each in made:
        each.state.close()
