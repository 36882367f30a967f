"""surfaces: what is rendered for agents from the same tables."""

from __future__ import annotations

from pathlib import Path

import click

from widelane.cli import console, exit_codes
from widelane.cli.given import open_desk
from widelane.prompts import surfaces


@click.command("surfaces")
@click.option("--write", is_flag=True, help="Render .claude/ and the marked part of CLAUDE.md.")
@click.option("--check", is_flag=True, help="Name every value in them that isn't that of the tables; exit code 1.")
def surfaces_verb(write: bool, check: bool) -> int:
    """Write or check the agent files of this folder: .claude/ and the marked part of CLAUDE.md."""
    if write == check:
        raise click.UsageError("give --write or --check", click.get_current_context())
    desk = open_desk()
    if write:
        for path in surfaces.write(desk.cwd, desk.catalog, desk.policy):
            console.out(f"wrote {_from(desk.cwd, path)}\n")
        return exit_codes.DONE
    drifts = surfaces.check(desk.cwd, desk.catalog, desk.policy)
    for drift in drifts:
        console.out(f"{drift}\n")
    return exit_codes.REFUSED if drifts else exit_codes.DONE


def _from(root: Path, path: Path) -> Path:
    return path.relative_to(root) if path.is_relative_to(root) else path
