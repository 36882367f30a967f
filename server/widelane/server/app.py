"""The server: what it is, and how it is served."""

from __future__ import annotations

import logging
import signal
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from mcp.server import MCPServer

from widelane.server.guard import PromptGuard
from widelane.server.pages import add_prompts
from widelane.server.records import add_resources
from widelane.server.toolbox import tools

if TYPE_CHECKING:
    from widelane.tools.desk import Desk

INSTRUCTIONS = """\
widelane gets GPU work the width that it can use. Use it whenever a plan or task needs GPUs: before any machine \
is asked for, and to run what was planned.

Order: write the plan (YAML, or a `yaml widelane` block in the plan's Markdown) -> plan_width, apply every \
finding's fix, repeat until PASS -> quota_check when the width matters -> dispatch with the plan_digest that \
plan_width returned -> dispatch_status with wait_s until the state is an end. Runs let go of their machines by \
themselves; release ends one early.

Wide by default: when a phase has an axis (seeds, draws, models, prompts), declare it and ask for the width that \
pays. Write the command so that one unit is one combination, or so that it follows {gpus}: the width that is \
realized may be narrower than the one asked for. A phase of API calls or of CPU work has gpus: 0.

A refusal is an answer: REVISE lists findings with line, numbers and a fix; nothing was created. Never narrow \
the science to pass: no finding asks for a smaller experiment.

The planner and efficiency_critic prompts hold the whole method; agents that can't call prompts read them as \
widelane://prompts/planner and widelane://prompts/efficiency_critic. Policy, ladders and machines: \
widelane://policy, widelane://ladder, widelane://catalog. Runs: widelane://runs and widelane://runs/{run_id}.
"""


def build(desk: Desk) -> MCPServer:
    """The server with its tools, prompts and resources. Reads nothing and opens nothing until it is asked."""
    server: MCPServer = MCPServer(
        "widelane",
        title="widelane",
        description="The right GPU width for planned work, and the machines to run it on",
        instructions=INSTRUCTIONS,
        version=version("widelane"),
        log_level="WARNING",
        tools=tools(desk),
    )
    add_resources(server, desk)
    server.middleware.append(PromptGuard(add_prompts(server, desk)))
    return server


def serve_stdio(desk: Desk) -> None:
    """Serve on stdin and stdout until stdin closes. Logging goes to stderr, warnings and worse."""
    # A thread that reads stdin can't be interrupted, and Python's own handler would wait for it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    build(desk).run()
