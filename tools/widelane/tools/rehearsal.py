"""Settings for a simulated cloud, given as a scenario file or as the URL of one that runs."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import TYPE_CHECKING

from widelane.errors import ConfigError

if TYPE_CHECKING:
    from widelane.config import Settings


def simulated(settings: Settings, sim: str, scenario: Path) -> Settings:
    """`settings` with every real lane replaced by the simulated cloud `sim`; starts a scenario that isn't running.

    `scenario` is its path when `sim` is no URL.

    Raises:
        ScenarioError: a scenario that can't be used.
        ConfigError: nothing answers at the URL.
    """
    from widelane.config import make_home  # noqa: PLC0415 - a rehearsal only
    from widelane.simcloud import client  # noqa: PLC0415 - as above

    if not sim.startswith(("http://", "https://")):
        make_home(settings.home)
        found = client.ensure_running(scenario, settings.home)
        return settings.simulated(found.url, found.project)
    url = sim.rstrip("/")
    try:
        project = str(client.call(url, "GET", "/sim/clock")["project"])
    except (OSError, ValueError, KeyError, http.client.HTTPException) as error:
        raise ConfigError(
            f"no simulated cloud answers at {url}: {error}", hint="`widelane sim serve SCENARIO` starts one"
        ) from error
    return settings.simulated(url, project)
