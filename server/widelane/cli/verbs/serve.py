"""serve: the MCP server on stdin and stdout."""

from __future__ import annotations

import click

from widelane.cli.given import SIM, open_desk


@click.command("serve")
@SIM
def serve_verb(sim: str | None) -> None:
    """Serve the tools, prompts and resources to an agent host over MCP on stdin and stdout."""
    from widelane.server.app import serve_stdio  # noqa: PLC0415 - the SDK takes its time to load

    serve_stdio(open_desk(sim))
