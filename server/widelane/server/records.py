"""Resources: policy, ladders, machines, and the record of each run."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer

from widelane.errors import WidelaneError
from widelane.server.failures import resource_error
from widelane.tools import reference

if TYPE_CHECKING:
    from widelane.tools.desk import Desk

_JSON = "application/json"


def add_resources(server: MCPServer, desk: Desk) -> None:
    """Register what can be read without a tool call; each is computed when it is read."""
    pages: tuple[tuple[str, str, Callable[[Desk], Any]], ...] = (
        ("policy", "Lane order, thresholds, caps and waits in force", reference.policy),
        (
            "ladder",
            "For each kind of work, width and length: the rungs in the order in which they are tried",
            reference.ladders,
        ),
        (
            "catalog",
            "Machine types, where they are offered, prices (only ever reported) and kinds of work",
            reference.catalog,
        ),
        ("runs", "The newest runs: id, state, widths, units", reference.runs),
    )
    for name, description, read in pages:
        _add(server, desk, (name, description), read)

    @server.resource(
        "widelane://runs/{run_id}", name="run", description="One run, with every attempt of its walks", mime_type=_JSON
    )
    def run(run_id: str) -> str:
        try:
            return desk.runs.status(run_id).model_dump_json()
        except WidelaneError as failure:
            raise resource_error(failure) from failure


def _add(server: MCPServer, desk: Desk, what: tuple[str, str], read: Callable[[Desk], Any]) -> None:
    name, description = what

    @server.resource(f"widelane://{name}", name=name, description=description, mime_type=_JSON)
    def page() -> str:
        try:
            return json.dumps(read(desk), separators=(",", ":"))
        except WidelaneError as failure:
            raise resource_error(failure) from failure
