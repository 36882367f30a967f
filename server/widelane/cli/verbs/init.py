"""init: write a commented widelane.toml."""

from __future__ import annotations

from pathlib import Path

import click

from widelane import config
from widelane.cli import console
from widelane.errors import ConfigError

_FILE = "widelane.toml"


@click.command("init")
@click.option("--force", is_flag=True, help=f"Write over a {_FILE} that is there.")
def init_verb(force: bool) -> None:
    """Write a commented widelane.toml into this folder."""
    try:
        with Path(_FILE).open("w" if force else "x", encoding="utf-8") as file:
            file.write(config.template())
    except FileExistsError:
        raise ConfigError(f"{_FILE} is here already", hint="edit it, or use --force to write over it") from None
    except OSError as error:
        raise ConfigError(f"{_FILE} can't be written: {error.strerror}", hint="run it in a folder of yours") from error
    console.out(f"wrote {_FILE}\n")
