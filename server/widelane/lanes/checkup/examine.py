"""Finds the checks of a lane by its kind. Lane packages are imported only then."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from widelane.config import Settings
from widelane.errors import ConfigError, WidelaneError
from widelane.lanes.checkup.sheet import Sheet
from widelane.models.checkup import SetupCheck

_KINDS = {"gcp": "google", "slurm": "cluster", "ssh": "box", "runpod": "pods", "local": "here"}


def examine(lane: str, settings: Settings, env: Mapping[str, str]) -> tuple[SetupCheck, ...]:
    """Every check of a configured lane; one that breaks off is a failed check itself."""
    kind, _, place = lane.partition(".")
    sheet = Sheet(lane)
    try:
        import_module(f"widelane.lanes.checkup.{_KINDS[kind]}").examine(sheet, settings, place, env)
    except WidelaneError as error:
        name = "configuration" if isinstance(error, ConfigError) else "lane"
        sheet.fail(name, error.message, error.hint or f"look at [lanes.{lane}]")
    return tuple(sheet.checks)
