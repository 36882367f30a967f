"""The folder that everything of a user's runs stands in."""

from __future__ import annotations

from pathlib import Path

from widelane.errors import ConfigError


def make_home(home: Path) -> None:
    """Make the folder of WIDELANE_HOME for its owner alone: journal, logs and sources are nobody else's to read.

    A folder that is there keeps its mode.

    Raises:
        ConfigError: it can't be made.
    """
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(
            f"{home} can't be made: {error.strerror or error}", hint="set WIDELANE_HOME to a folder that you can write"
        ) from error
