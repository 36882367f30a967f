"""The server-side run limit of a machine, sized at the width that was got."""

from __future__ import annotations

from math import ceil

from widelane.facts import Policy
from widelane.models.verdict import PhaseVerdict, WidthRow


def fence_seconds(phase: PhaseVerdict, width: int, policy: Policy) -> int:
    """Seconds after which a machine of `width` deletes itself: wall clock with boot and margin.

    A width between two rows counts as the narrower one. Without an estimate it is the policy's value for that.
    """
    row = _row_at(phase, width)
    if row is None:
        seconds = policy.fence_unknown_seconds
    else:
        seconds = ceil((row.wall_hours * 3600 + policy.fence_boot_seconds) * policy.fence_margin)
    return max(policy.fence_min_seconds, min(seconds, policy.run_limit_seconds))


def wall_seconds(phase: PhaseVerdict, width: int) -> int:
    """Seconds that the work is expected to take on a machine of `width`, boot left out; 0 without an estimate."""
    row = _row_at(phase, width)
    return 0 if row is None else ceil(row.wall_hours * 3600)


def _row_at(phase: PhaseVerdict, width: int) -> WidthRow | None:
    """A width between two rows counts as the narrower one."""
    rows = sorted(phase.widths, key=lambda row: row.width)
    return next((row for row in reversed(rows) if row.width <= width), rows[0] if rows else None)
