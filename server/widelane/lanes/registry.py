"""Opens a lane by its name. Lane packages are imported only then."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from widelane.config import GcpSettings, Settings
from widelane.errors import ConfigError
from widelane.facts import catalog, load_policy
from widelane.lanes.clock import RemoteClock, SystemClock
from widelane.lanes.protocol import Lane
from widelane.models.clock import Clock


def open_lane(name: str, settings: Settings, env: Mapping[str, str] | None = None) -> Lane:
    """The lane of that name, not connected yet. Safe to keep for as long as the settings hold.

    `env` is what the work of the local lane inherits, by default this process's environment.

    Raises:
        ConfigError: no such lane, or its section is missing.
    """
    make = _LANES.get(name)
    if make is None:
        known = ", ".join(sorted(_LANES))
        raise ConfigError(f"no lane named {name!r} can be opened", hint=f"lanes that can: {known}")
    return make(settings, os.environ if env is None else env)


def _gcp(settings: Settings, env: Mapping[str, str]) -> Lane:
    from widelane.lanes.gcp.client import is_loopback  # noqa: PLC0415 - lanes that aren't used aren't loaded
    from widelane.lanes.gcp.lane import GcpLane  # noqa: PLC0415 - as above

    gcp = settings.gcp or GcpSettings(project="")
    simulated = gcp.endpoint is not None and is_loopback(gcp.endpoint)
    clock: Clock = RemoteClock(gcp.endpoint or "") if simulated else SystemClock()
    regions = gcp.regions or load_policy(settings.policy, str(settings.file or "")).regions
    return GcpLane(gcp, clock, _zones(regions))


def _local(settings: Settings, env: Mapping[str, str]) -> Lane:
    from widelane.lanes.local.lane import LocalLane  # noqa: PLC0415 - lanes that aren't used aren't loaded

    return LocalLane(settings.home, SystemClock(), env)


def _zones(regions: tuple[str, ...]) -> tuple[str, ...]:
    """Zones of these regions that offer anything, each once."""
    offers = (offer for offered in catalog().offers.values() for offer in offered)
    return tuple(dict.fromkeys(offer.zone for offer in offers if offer.region in regions))


_LANES: Mapping[str, Callable[[Settings, Mapping[str, str]], Lane]] = {"gcp": _gcp, "local": _local}
