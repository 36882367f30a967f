"""The unit list that a host is given, in the form that the runner reads."""

from __future__ import annotations

from typing import Any

from widelane.ledger import RunState
from widelane.ledger.events import RequestedPhase
from widelane.models.plan import Phase
from widelane.router import UnitList

SPEC_VERSION = 1


def make_spec(
    run: RunState, requested: RequestedPhase, phase: Phase, units: UnitList, inputs: tuple[str, ...]
) -> dict[str, Any]:
    """Everything of the spec that is the same for every attempt of a dispatch.

    `inputs` are digests of the records whose outputs are laid into the work folder.
    """
    source = run.requested.sources.get(phase.name)
    return {
        "spec": SPEC_VERSION,
        "run_id": run.run_id,
        "dispatch_id": requested.dispatch_id,
        "phase": phase.name,
        "requested_width": requested.requested_width,
        "source": {"sha256": source, "key": f"sources/{source}.tar.gz"} if source else None,
        "inputs": list(inputs),
        "workdir": phase.workdir or "",
        "env": dict(phase.env),
        "setup": {"argv": list(units.setup)} if units.setup else None,
        "units": [
            {
                "index": unit.index,
                "digest": unit.digest,
                "argv": list(unit.argv),
                "axes": dict(unit.axes),
                "arm": unit.arm,
                "gpus": unit.gpus,
                "outputs": list(unit.outputs),
                "env": dict(unit.env),
            }
            for unit in units.units
        ],
        "merge": None
        if units.merge is None
        else {
            "digest": units.merge.digest,
            "argv": list(units.merge.argv),
            "outputs": list(units.merge.outputs),
        },
    }


def for_attempt(spec: dict[str, Any], attempt_id: str, width: int, cpu_slots: int) -> dict[str, Any]:
    """The spec of one attempt: whose lease it is and how many devices to expect."""
    return {**spec, "lease": attempt_id, "expected_width": width, "cpu_slots": cpu_slots}
