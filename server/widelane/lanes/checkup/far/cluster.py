"""What a login host shows of its cluster, by sinfo and sacct alone."""

from __future__ import annotations

from typing import Any

from widelane.lanes.slurm.far import commands
from widelane.lanes.slurm.far.commands import RefusedError
from widelane.transport.remote.frame import Call


def cluster(call: Call) -> dict[str, Any]:
    """Asked: partition. `refused` is what sinfo said instead of nodes; `accounting` whether finished jobs are kept."""
    commands.find_commands()
    told: dict[str, Any] = {"missing": commands.missing_commands(), "refused": None, "nodes": [], "accounting": False}
    if told["missing"]:
        return told
    try:
        told["nodes"] = commands.nodes(call.request["partition"])
    except RefusedError as error:
        told["refused"] = error.answer
        return told
    try:
        commands.run("sacct", "-n", "-X", "-S", "now")
        told["accounting"] = True
    except RefusedError:
        pass
    return told
