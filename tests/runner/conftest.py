from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.hostbench import HostBench
from widelane.runner import bundle


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runner") / "runner.pyz"
    path.write_bytes(bundle.build())
    return path


@pytest.fixture
def bench(tmp_path: Path, runner: Path) -> Iterator[HostBench]:
    bench = HostBench(tmp_path, runner)
    yield bench
    left = bench.sweep()
    assert not left, f"processes left behind: {left}\n{bench.said()}"
