from __future__ import annotations

from pathlib import Path

import pytest

from widelane.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store((tmp_path / "a store #1").as_uri())
