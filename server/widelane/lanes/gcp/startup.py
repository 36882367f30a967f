"""The two programs that a machine starts with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources

from widelane.lanes.shipping import bootstrap_of


@dataclass(frozen=True, slots=True)
class Startup:
    """`script` is the sh start-up script; `bootstrap` the Python text that it fetches and runs."""

    script: str
    bootstrap: str


@cache
def startup() -> Startup:
    """Both programs."""
    folder = resources.files("widelane.lanes.gcp")
    return Startup(
        script=(folder / "startup.sh").read_text(encoding="utf-8"),
        bootstrap=bootstrap_of("widelane.lanes.gcp"),
    )
