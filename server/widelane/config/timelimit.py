"""Time limits in SLURM's words."""

from __future__ import annotations

import re

_LIMIT = re.compile(r"(?:(?P<days>\d+)-)?(?P<clock>\d+(?::\d+){0,2})")
_NONE = frozenset({"", "infinite", "unlimited", "n/a"})


def seconds_of(limit: str) -> int | None:
    """A time limit in seconds: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S. None: there is none.

    Raises:
        ValueError: that is no time limit.
    """
    text = limit.strip()
    if text.lower() in _NONE:
        return None
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ValueError(f"not a time limit of SLURM: {limit!r}")
    parts = [int(part) for part in found["clock"].split(":")]
    if found["days"] is not None:
        hours, minutes, seconds = (*parts, 0, 0)[:3]
        return int(found["days"]) * 86_400 + hours * 3600 + minutes * 60 + seconds
    if len(parts) == 1:
        return parts[0] * 60
    hours, minutes, seconds = (0, *parts)[-3:]
    return hours * 3600 + minutes * 60 + seconds
