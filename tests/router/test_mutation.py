"""A change of the router that no test notices is a line that no test holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fakes.mutation import lay_out, mutate, score, survivors

LEAST_SHARE = 0.85


@pytest.mark.weekly
@pytest.mark.slow
@pytest.mark.timeout(8 * 3600)
def test_the_tests_of_the_router_notice_most_mutants(repo: Path, tmp_path: Path) -> None:
    lay_out(repo, tmp_path)
    mutate(tmp_path, os.cpu_count() or 1)
    killed, tried = score(tmp_path)
    assert tried > 1000
    assert killed / tried >= LEAST_SHARE, f"{killed} of {tried}:\n" + "\n".join(survivors(tmp_path))
