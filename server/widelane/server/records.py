"""Resources: policy, ladders, machines, and the record of each run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp.server import MCPServer

from widelane.errors import WidelaneError
from widelane.server.failures import resource_error

if TYPE_CHECKING:
    from widelane.tools.desk import Desk

_JSON = "application/json"
_PAGES = {
    "policy": "Lane order, thresholds, caps and waits in force",
    "ladder": "For each kind of work, width and length: the rungs in the order in which they are tried",
    "catalog": "Machine types, where they are offered, prices (only ever reported) and kinds of work",
    "runs": "The newest runs: id, state, widths, units",
}


def add_resources(server: MCPServer, desk: Desk) -> None:
    """Register what can be read without a tool call; each is computed when it is read."""
    for name, description in _PAGES.items():
        _add(server, desk, name, description)

    @server.resource(
        "widelane://runs/{run_id}", name="run", description="One run, with every attempt of its walks", mime_type=_JSON
    )
    def run(run_id: str) -> str:
        try:
            return desk.runs.status(run_id).model_dump_json()
        except WidelaneError as failure:
            raise resource_error(failure) from failure


def _add(server: MCPServer, desk: Desk, name: str, description: str) -> None:
    @server.resource(f"widelane://{name}", name=name, description=description, mime_type=_JSON)
    def page() -> str:
        from widelane.tools import reference  # noqa: PLC0415 - tables are read when they are asked for

        try:
            return json.dumps(reference.PAGES[name](desk), separators=(",", ":"))
        except WidelaneError as failure:
            raise resource_error(failure) from failure
