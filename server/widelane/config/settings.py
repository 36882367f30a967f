"""What the configuration says, frozen: read once at the edge and handed down."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from widelane.config.timelimit import seconds_of
from widelane.models.base import Frozen
from widelane.models.room import LaneRoom

SIM_PROJECT = "sim-project"
"""Project of a simulated cloud that names none."""


class GcpSettings(Frozen):
    """`[lanes.gcp]`. Empty texts and None leave the choice to the lane. `endpoint` is None for the public API."""

    project: str
    regions: tuple[str, ...] = ()
    network: str = "default"
    subnetwork: str = ""
    service_account: str = "default"
    bucket: str = ""
    image: str = ""
    cpu_image: str = ""
    """Of machines without GPU."""
    install_driver: bool = True
    disk_type: str = ""
    disk_types: dict[str, str] = Field(default_factory=dict[str, str])
    """By machine family; these win over `disk_type`."""
    disk_gib: int | None = None
    secrets: dict[str, str] = Field(default_factory=dict[str, str])
    """Secret Manager's resource for a secret's name in plans, where it isn't that name in the project."""
    external_address: bool = True
    endpoint: str | None = None


class LocalSettings(Frozen):
    """`[lanes.local]`: this machine."""


class SlurmSettings(Frozen):
    """One `[lanes.slurm.NAME]`. `time_limit` is in SLURM's words: `1-00:00:00`. `host` may be `localhost`."""

    host: str
    partition: str = ""
    account: str = ""
    time_limit: str = ""
    workdir: str = ""
    gpu: str = ""
    """GPU type, as the cluster names it."""
    gpus: int | None = None
    """GPUs of the largest node; None: the cluster is asked when a walk begins."""
    options: tuple[str, ...] = ()
    """More options for sbatch."""
    python: str = ""
    ssh_config: str = ""
    """A file of this machine for ssh's `-F`."""

    @property
    def room(self) -> LaneRoom:
        """What is known of its machines without asking. A time limit that can't be read is told by the lane's check."""
        try:
            return LaneRoom(gpus=self.gpus, seconds=seconds_of(self.time_limit))
        except ValueError:
            return LaneRoom(gpus=self.gpus)


class SshSettings(Frozen):
    """One `[lanes.ssh.NAME]`. `workdir` and `python` are the host's; empty texts leave the choice to the lane."""

    host: str
    gpus: int
    workdir: str = ""
    python: str = ""
    ssh_config: str = ""
    """A file of this machine for ssh's `-F`."""


class RunpodSettings(Frozen):
    """`[lanes.runpod]`. `key_env` names the environment variable that holds the API key, which is kept nowhere.

    `endpoint` is None for the public API.
    """

    key_env: str = "RUNPOD_API_KEY"
    transport: Literal["rest2", "sdk"] = "rest2"
    cloud: Literal["SECURE", "COMMUNITY"] = "SECURE"
    image: str = ""
    endpoint: str | None = None


class NotifySettings(Frozen):
    """`[notify]`: the words of a command."""

    command: tuple[str, ...]


class Settings(Frozen):
    """Everything that widelane.toml and the environment decide. A lane without section is None or empty."""

    home: Path
    """Folder of the ledger and the default store."""
    file: Path | None = None
    """The widelane.toml that was read."""
    store: str | None = None
    """Default store URL; None: under `home`, or in the lane's bucket."""
    gcp: GcpSettings | None = None
    local: LocalSettings | None = None
    slurm: dict[str, SlurmSettings] = Field(default_factory=dict[str, SlurmSettings])
    ssh: dict[str, SshSettings] = Field(default_factory=dict[str, SshSettings])
    runpod: RunpodSettings | None = None
    policy: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Overrides of policy values, as written; `facts` checks them."""
    intents: dict[str, dict[str, Any]] = Field(default_factory=dict[str, dict[str, Any]])
    """Own intents, as written; `facts` checks them."""
    notify: NotifySettings | None = None

    @property
    def lanes(self) -> tuple[str, ...]:
        """Configured lanes, in no order of preference; each cluster and each host is one: `slurm.NAME`."""
        have = {
            "gcp": self.gcp is not None,
            **{f"slurm.{name}": True for name in self.slurm},
            **{f"ssh.{name}": True for name in self.ssh},
            "local": self.local is not None,
            "runpod": self.runpod is not None,
        }
        return tuple(lane for lane, configured in have.items() if configured)

    @property
    def rooms(self) -> dict[str, LaneRoom]:
        """By lane whose machines are in no table: what the configuration says of them."""
        return {
            **{f"slurm.{name}": cluster.room for name, cluster in self.slurm.items()},
            **{f"ssh.{name}": LaneRoom(gpus=box.gpus) for name, box in self.ssh.items()},
        }

    @property
    def regions(self) -> tuple[str, ...]:
        """Regions of the gcp lane; empty leaves them to the policy."""
        return self.gcp.regions if self.gcp is not None else ()

    def simulated(self, url: str, project: str = SIM_PROJECT) -> Settings:
        """These settings against a simulated cloud: no real lane, store, account or notification is left in them."""
        given = self.gcp or GcpSettings(project=project)
        machine = {"network", "subnetwork", "image", "cpu_image", "install_driver"}
        kept = given.model_dump(include={"regions", "disk_type", "disk_types", "disk_gib", *machine})
        gcp = GcpSettings(project=project, endpoint=url, **kept)
        empty: dict[str, Any] = {"slurm": {}, "ssh": {}, "runpod": None, "store": None, "notify": None}
        return self.model_copy(update={"gcp": gcp} | empty)
