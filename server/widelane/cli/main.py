"""Entry point: finds the verb, loads only its module, and turns how it ended into an exit code."""

from __future__ import annotations

import importlib
import sys
from typing import NoReturn, cast

import click

from widelane.cli import console, exit_codes
from widelane.cli.crash import Net

_VERBS = {
    "init": "init",
    "check": "plan",
    "plan": "plan",
    "diff": "diff",
    "quota": "quota",
    "dispatch": "dispatch",
    "status": "runs",
    "list": "runs",
    "wait": "dispatch",
    "logs": "outputs",
    "pull": "outputs",
    "cancel": "runs",
    "release": "runs",
    "reap": "reap",
    "explain-error": "explain_error",
    "doctor": "doctor",
    "sim": "sim",
    "serve": "serve",
    "surfaces": "surfaces",
}
"""Module of cli.verbs that holds each verb; loaded when the verb is called."""


class Verbs(click.Group):
    """The verbs, each imported at its first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order of a user's work."""
        return list(_VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb; None when there is none of that name."""
        if cmd_name not in _VERBS:
            return None
        module = importlib.import_module(f"widelane.cli.verbs.{_VERBS[cmd_name]}")
        return cast("click.Command", getattr(module, f"{cmd_name.replace('-', '_')}_verb"))


def _version(ctx: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        metadata = importlib.import_module("importlib.metadata")
        console.out(f"widelane {metadata.version('widelane')}\n")
        ctx.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def verbs() -> None:
    """Ask for the GPU width that pays, get it, and let it go.

    Exit codes: 0 pass or done; 1 findings, failed, stalled or refused; 2 usage or bad input; 3 could not judge; 130
    interrupted, which ends the watching and not the run.
    """


def run(arguments: list[str]) -> int:
    """Run one command line; the exit code."""
    console.prepare()
    with Net() as net:
        # Not `verbs.main`, which would turn a closed pipe into exit code 1 before the net sees it.
        with verbs.make_context("widelane", arguments) as context:
            code = verbs.invoke(context)
        net.code = code if isinstance(code, int) else exit_codes.DONE
    return net.code


def main() -> NoReturn:
    """The `widelane` command."""
    sys.exit(run(sys.argv[1:]))
