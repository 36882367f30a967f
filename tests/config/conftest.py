from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from widelane import config
from widelane.config import Settings

Load = Callable[..., Settings]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Loads the settings of a folder with the given widelane.toml, in an environment that has nothing else."""

    def settings(toml: str | None = None, sim: str | None = None, **env: str) -> Settings:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        if toml is not None:
            (folder / "widelane.toml").write_text(toml, encoding="utf-8")
        return config.load(folder, {"HOME": str(tmp_path / "user")} | env, sim)

    return settings
