"""widelane.toml and the environment, read once at the edge into frozen Settings."""

from __future__ import annotations

from widelane.config.home import make_home
from widelane.config.load import FILE, load
from widelane.config.settings import (
    SIM_PROJECT,
    GcpSettings,
    LocalSettings,
    NotifySettings,
    RunpodSettings,
    Settings,
    SlurmSettings,
    SshSettings,
)
from widelane.config.template import template

__all__ = [
    "FILE",
    "SIM_PROJECT",
    "GcpSettings",
    "LocalSettings",
    "NotifySettings",
    "RunpodSettings",
    "Settings",
    "SlurmSettings",
    "SshSettings",
    "load",
    "make_home",
    "template",
]
