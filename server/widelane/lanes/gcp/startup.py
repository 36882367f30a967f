"""The two programs that a machine starts with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from widelane.lanes.shipping import bootstrap_of, script_of


@dataclass(frozen=True, slots=True)
class Startup:
    """`script` is the sh start-up script; `bootstrap` the Python text that it fetches and runs."""

    script: str
    bootstrap: str


@cache
def startup() -> Startup:
    """Both programs."""
    return Startup(
        script=script_of("widelane.lanes.gcp", "startup.sh"),
        bootstrap=bootstrap_of("widelane.lanes.gcp"),
    )
