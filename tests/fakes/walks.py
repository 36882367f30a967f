"""Walks that a test plays by hand."""

from __future__ import annotations

from typing import Any

from widelane.ledger import AttemptState, WalkState
from widelane.ledger.events import AttemptFailed, AttemptIntended, WalkStarted
from widelane.models.attempt import Outcome, Scope
from widelane.models.plan import ProvisioningModel
from widelane.models.quota import Admits
from widelane.models.verdict import Rung

ZONES = ("us-central1-a", "us-central1-c", "us-east4-c")


def make_rung(machine_type: str, width: int, model: str, **changes: Any) -> Rung:
    values: dict[str, Any] = {"lane": "gcp", "gpu": "a100", "zones": ZONES, "admits": Admits.UNKNOWN} | changes
    return Rung(machine_type=machine_type, width=width, provisioning_model=ProvisioningModel(model), **values)


class Walked:
    """A walk that a test plays by hand."""

    def __init__(self, *ladder: Rung) -> None:
        self.state = WalkState(WalkStarted(number=1, ladder=ladder), "2026-01-01T00:00:00+00:00")

    def failed(self, rung: int, zone: str, outcome: Outcome, scope: Scope = Scope.ZONE, **more: Any) -> None:
        number = len(self.state.attempts) + 1
        intended = AttemptIntended(
            attempt_id=f"a{number}",
            walk=1,
            rung=rung,
            zone=zone,
            name=f"wl-a{number}",
            request_id=str(number),
            fence_seconds=600,
            wait_seconds=more.pop("wait_seconds", 0),
            sent_at="2026-01-01T00:00:00+00:00",
            deadline="2026-01-01T00:10:00+00:00",
            spec_key="k",
        )
        attempt = AttemptState(intended, self.state.started.ladder[rung], "2026-01-01T00:00:00+00:00")
        attempt.failed = AttemptFailed(
            attempt_id=intended.attempt_id, outcome=outcome, scope=scope, code=outcome.value, message="", **more
        )
        self.state.attempts.append(attempt)
