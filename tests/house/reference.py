"""Pages made from the program itself: `make docs` writes them, a test compares."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click

from widelane.cli.main import verbs
from widelane.facts.policy import policy_settings
from widelane.facts.settings import Setting

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"

CLI_HEAD = """\
# Command line

Made from the commands by `make docs`. `--json` prints what the tool of the same name answers.
"""

POLICY_HEAD = """\
# Policy

Made from `facts/data/policy.csv` by `make docs`. Any of these can be set under `[policy]` in
[widelane.toml](configuration.md), and is then part of the policy version that a verdict carries. Lanes, thresholds,
waits and caps are here; no limit in money is, and none can be set.

| Key | Default | Unit | Allowed | Why |
|---|---|---|---|---|
"""


def cli_page() -> str:
    """Every verb with its options."""
    root = click.Context(verbs, info_name="widelane", **verbs.context_settings)
    return CLI_HEAD + "".join(_command(verbs, root))


def policy_page() -> str:
    """Every value of the policy."""
    return POLICY_HEAD + "".join(_setting(setting) for setting in policy_settings().values())


PAGES: Mapping[str, Callable[[], str]] = {"cli.md": cli_page, "policy.md": policy_page}


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"\n## `{context.command_path}`\n\n" if context.parent else "\n"
    yield command.get_usage(context).replace("Usage: ", "```\n") + "\n```\n"
    if command.help:
        yield f"\n{_plain(command.help)}\n"
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    if records:
        yield "\n| Option | |\n|---|---|\n"
        yield from (f"| `{_cell(name)}` | {_cell(text)} |\n" for name, text in records)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _command(inner, click.Context(inner, parent=context, info_name=name))


def _setting(setting: Setting) -> str:
    value = setting.value
    default = json.dumps(list(value) if isinstance(value, tuple) else value)
    allowed = ", ".join(setting.options)
    if setting.least is not None and setting.most is not None:
        allowed = f"{setting.least:.10g} to {setting.most:.10g}"
    return f"| `{setting.name}` | `{default}` | {setting.unit} | {allowed} | {_cell(setting.why)} |\n"


def _plain(text: str) -> str:
    return "\n".join(line.strip() for line in text.replace("\b", "").strip().splitlines())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    for name, render in PAGES.items():
        (DOCS / name).write_text(render(), encoding="utf-8")
