"""The server-side run limit of a machine, sized at the width that was got."""

from __future__ import annotations

from math import ceil

from widelane.facts import Policy
from widelane.models.verdict import PhaseVerdict


def fence_seconds(phase: PhaseVerdict, width: int, policy: Policy) -> int:
    """Seconds after which a machine of `width` deletes itself: wall clock with boot and margin.

    A width between two rows counts as the narrower one. Without an estimate it is the policy's value for that.
    """
    rows = sorted(phase.widths, key=lambda row: row.width)
    if not rows:
        seconds = policy.fence_unknown_seconds
    else:
        row = next((row for row in reversed(rows) if row.width <= width), rows[0])
        seconds = ceil((row.wall_hours * 3600 + policy.fence_boot_seconds) * policy.fence_margin)
    return max(policy.fence_min_seconds, min(seconds, policy.run_limit_seconds))
