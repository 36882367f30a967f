"""Opens a lane by its name. Lane packages are imported only then."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from widelane.config import GcpSettings, Settings
from widelane.errors import ConfigError
from widelane.facts import catalog, load_policy
from widelane.lanes.clock import RemoteClock, SystemClock
from widelane.lanes.protocol import Lane
from widelane.models.clock import Clock

HERE = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names under which a login host is this machine."""


def open_lane(name: str, settings: Settings, env: Mapping[str, str] | None = None) -> Lane:
    """The lane of that name, not connected yet. Safe to keep for as long as the settings hold.

    `env` is what the work of the local lane inherits and where keys are, by default this process's environment.

    Raises:
        ConfigError: no such lane, or its section is missing.
    """
    kind, _, place = name.partition(".")
    own = os.environ if env is None else env
    if kind == "slurm":
        return _slurm(settings, place)
    if kind == "ssh":
        return _ssh(settings, place)
    make = _LANES.get(name)
    if make is None:
        known = ", ".join([*sorted(_LANES), *(lane for lane in settings.lanes if "." in lane)])
        raise ConfigError(f"no lane named {name!r} can be opened", hint=f"lanes that can: {known}")
    return make(settings, own)


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


def _runpod(settings: Settings, env: Mapping[str, str]) -> Lane:
    from widelane.lanes.runpod.lane import RunpodLane  # noqa: PLC0415 - lanes that aren't used aren't loaded

    if settings.runpod is None:
        raise ConfigError("RunPod isn't configured", hint="write a section [lanes.runpod]")
    return RunpodLane(settings.runpod, SystemClock(), env)


def _slurm(settings: Settings, place: str) -> Lane:
    """`slurm.NAME`, or `slurm` alone where there is only one."""
    from widelane.lanes.slurm.lane import SlurmLane  # noqa: PLC0415 - lanes that aren't used aren't loaded
    from widelane.transport import HereLine, Host, SshLine  # noqa: PLC0415 - as above

    only = next(iter(settings.slurm)) if len(settings.slurm) == 1 else ""
    cluster = settings.slurm.get(place or only)
    if cluster is None:
        known = ", ".join(f"slurm.{name}" for name in settings.slurm)
        hint = f"configured clusters: {known}" if known else "write a section [lanes.slurm.NAME] with `host`"
        raise ConfigError(f"no cluster named {place!r}" if place else "no one cluster is meant", hint=hint)
    name = f"slurm.{place or only}"
    near = cluster.host in HERE
    config = Path(cluster.ssh_config).expanduser() if cluster.ssh_config else None
    python = cluster.python or "python3"
    line = HereLine() if near else SshLine(name, cluster.host, settings.home, config=config, python=python)
    return SlurmLane(name, cluster, Host(name, line), SystemClock(), settings.home, near=near)


def _ssh(settings: Settings, place: str) -> Lane:
    """`ssh.NAME`, or `ssh` alone where there is only one."""
    from widelane.lanes.ssh.lane import SshLane  # noqa: PLC0415 - lanes that aren't used aren't loaded
    from widelane.transport import Host, SshLine  # noqa: PLC0415 - as above

    only = next(iter(settings.ssh)) if len(settings.ssh) == 1 else ""
    box = settings.ssh.get(place or only)
    if box is None:
        known = ", ".join(f"ssh.{name}" for name in settings.ssh)
        hint = f"configured hosts: {known}" if known else "write a section [lanes.ssh.NAME] with `host` and `gpus`"
        raise ConfigError(f"no host named {place!r}" if place else "no one host is meant", hint=hint)
    name = f"ssh.{place or only}"
    config = Path(box.ssh_config).expanduser() if box.ssh_config else None
    line = SshLine(name, box.host, settings.home, config=config, python=box.python or "python3")
    return SshLane(name, box, Host(name, line), SystemClock(), settings.home)


def _zones(regions: tuple[str, ...]) -> tuple[str, ...]:
    """Zones of these regions that offer anything, each once."""
    offers = (offer for offered in catalog().offers.values() for offer in offered)
    return tuple(dict.fromkeys(offer.zone for offer in offers if offer.region in regions))


_LANES: Mapping[str, Callable[[Settings, Mapping[str, str]], Lane]] = {
    "gcp": _gcp,
    "local": _local,
    "runpod": _runpod,
}
