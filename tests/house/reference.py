"""docs/cli.md, made from the commands themselves. `make docs` writes it, a test compares."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from widelane.cli.main import verbs

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "cli.md"

HEAD = """\
# Command line

Made from the commands by `make docs`. `--json` prints what the tool of the same name answers.
"""


def render() -> str:
    """The whole page."""
    root = click.Context(verbs, info_name="widelane", **verbs.context_settings)
    return HEAD + "".join(_command(verbs, root))


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


def _plain(text: str) -> str:
    return "\n".join(line.strip() for line in text.replace("\b", "").strip().splitlines())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
