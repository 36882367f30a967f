"""The table of keys: the reader, the template and docs/configuration.md are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Wants(StrEnum):
    """What a key wants, in words."""

    TEXT = "a text"
    TEXTS = "a list of texts"
    COUNT = "a whole number, 1 or more"
    FLAG = "true or false"
    DISK = "a table with `type` and `gib`"
    TABLE = "a table of texts"
    WORDS = "a command: a text, or a list of words"
    ANY = "any value"


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `example` is its value in TOML; `default` says what holds without it ("" for a required key)."""

    wants: Wants
    example: str
    doc: str
    default: str = ""
    required: bool = False
    pattern: str = ""
    """What a text must match as a whole."""


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the file. `named`: it stands for any number of tables, each under its own name."""

    path: tuple[str, ...]
    doc: str
    keys: Mapping[str, Key]
    named: bool = False
    free: bool = False
    """Takes any keys, of which `keys` are examples; whoever uses them checks them."""

    @property
    def title(self) -> str:
        """As a header of the file: `lanes.slurm.NAME`."""
        return ".".join((*self.path, "NAME") if self.named else self.path)


ROOT = Section(
    (),
    "",
    {
        "store": Key(
            Wants.TEXT,
            '"file:///srv/widelane"',
            "Where outputs, logs and records go, as a URL.",
            "under `WIDELANE_HOME`",
            pattern=r"(file:///|gs://|ssh://)\S+",
        )
    },
)

SECTIONS: tuple[Section, ...] = (
    Section(
        ("lanes", "gcp"),
        "Google Cloud. Its credentials are those of `gcloud auth application-default login`.",
        {
            "project": Key(Wants.TEXT, '"my-project"', "The project that machines are created in.", required=True),
            "regions": Key(
                Wants.TEXTS, '["us-central1"]', "Regions to try; zones follow in the catalog's order.", "the policy's"
            ),
            "network": Key(Wants.TEXT, '"default"', "The network of the machines.", '"default"'),
            "subnetwork": Key(
                Wants.TEXT,
                '"default"',
                "Its subnetwork: a name, the same in each region, or a path, in which `{region}` may stand.",
                "the network's own",
            ),
            "service_account": Key(
                Wants.TEXT,
                '"widelane@my-project.iam.gserviceaccount.com"',
                "The account that machines act as: it reads and writes the store and deletes its own machine.",
                "the project's default account",
            ),
            "bucket": Key(
                Wants.TEXT,
                '"my-bucket"',
                "Bucket for outputs, logs and records, without `gs://`.",
                "none",
                pattern=r"[a-z0-9][a-z0-9._-]+",
            ),
            "image": Key(
                Wants.TEXT,
                '"projects/my-project/global/images/family/my-image"',
                "Boot image, by project and family.",
                "a stock image with a GPU driver",
            ),
            "cpu_image": Key(
                Wants.TEXT,
                '"projects/my-project/global/images/family/my-cpu-image"',
                "Boot image of machines without GPU.",
                "`image`, else Debian 12",
            ),
            "install_driver": Key(
                Wants.FLAG,
                "true",
                "Whether the image is asked to install its GPU driver at the first boot, as stock images can.",
                "true",
            ),
            "disk": Key(
                Wants.DISK,
                '{type = "pd-balanced", gib = 200}',
                "Boot disk: its type, its size in GiB, or both.",
                "what the machine's family takes, 200 GiB",
            ),
            "disk_types": Key(
                Wants.TABLE,
                '{a3-highgpu = "pd-ssd"}',
                "Boot disk types of single machine families; they win over `disk`.",
                "`disk`, or Hyperdisk where a family takes nothing else",
            ),
            "secrets": Key(
                Wants.TABLE,
                '{HF_TOKEN = "projects/my-project/secrets/hf-token"}',
                "Where Secret Manager has a secret that plans name, when not under that very name in this project.",
                "`projects/PROJECT/secrets/NAME`",
            ),
            "external_address": Key(
                Wants.FLAG,
                "true",
                "Whether machines get an external address. Without one, the network needs NAT.",
                "true",
            ),
        },
    ),
    Section(("lanes", "local"), "This machine. The section has no keys.", {}),
    Section(
        ("lanes", "slurm"),
        "A SLURM cluster, reached by `ssh HOST`.",
        {
            "host": Key(
                Wants.TEXT,
                '"login.cluster.example.org"',
                "Its login host, as `ssh` knows it; `localhost` when that is this machine.",
                required=True,
            ),
            "partition": Key(Wants.TEXT, '"gpu"', "The partition.", "the cluster's default"),
            "account": Key(Wants.TEXT, '"my-account"', "The account that jobs are charged to.", "the user's default"),
            "time_limit": Key(
                Wants.TEXT,
                '"1-00:00:00"',
                "Longest time a job may ask for.",
                "the partition's",
                pattern=r"(\d+-)?\d+(:\d+){0,2}",
            ),
            "workdir": Key(
                Wants.TEXT,
                '"scratch/widelane"',
                "Folder for work that login host and nodes share; relative to the home folder there.",
                "~/widelane",
            ),
            "gpu": Key(Wants.TEXT, '"a100"', "Type of GPU to ask for, as the cluster names it.", "any"),
            "gpus": Key(Wants.COUNT, "8", "GPUs of its largest node, so that plans are judged by them.", "unknown"),
            "options": Key(Wants.TEXTS, '["--qos=normal"]', "More options for `sbatch`; they win over ours.", "none"),
            "python": Key(
                Wants.TEXT, '"/opt/python/bin/python3"', "A Python of the login host, 3.9 or newer.", "python3"
            ),
            "ssh_config": Key(Wants.TEXT, '"~/.ssh/config"', "File for `ssh` to read instead.", "the user's"),
        },
        named=True,
    ),
    Section(
        ("lanes", "ssh"),
        "A machine of your own, reached by `ssh HOST`.",
        {
            "host": Key(Wants.TEXT, '"box.example.org"', "The machine, as `ssh` knows it.", required=True),
            "gpus": Key(Wants.COUNT, "8", "GPUs it has.", required=True),
            "workdir": Key(Wants.TEXT, '"/data/widelane"', "Folder for work there.", "~/.widelane"),
            "python": Key(Wants.TEXT, '"/opt/conda/bin/python3"', "A Python there, 3.9 or newer.", "python3"),
            "ssh_config": Key(Wants.TEXT, '"~/.ssh/config"', "File for `ssh` to read instead.", "the user's"),
        },
        named=True,
    ),
    Section(
        ("lanes", "runpod"),
        "RunPod, the last resort: reached when every lane before it is exhausted.",
        {
            "enabled": Key(Wants.FLAG, "true", "false leaves the lane out.", "true"),
            "key_env": Key(
                Wants.TEXT, '"RUNPOD_API_KEY"', "Environment variable that holds the API key.", '"RUNPOD_API_KEY"'
            ),
            "transport": Key(
                Wants.TEXT,
                '"rest2"',
                "How the service is spoken to: `rest2` (REST v2) or `sdk` (GraphQL, by the `runpod` package).",
                '"rest2"',
                pattern="rest2|sdk",
            ),
            "cloud": Key(
                Wants.TEXT,
                '"SECURE"',
                "Whose machines are rented: `SECURE` (the service's own) or `COMMUNITY`.",
                '"SECURE"',
                pattern="SECURE|COMMUNITY",
            ),
            "image": Key(
                Wants.TEXT,
                '"runpod/pytorch:2.8.0-py3.11-cuda12.8.1-cudnn-devel-ubuntu22.04"',
                "Container image; it needs a Python 3.9 or newer.",
                "a stock image with PyTorch",
                pattern=r'[^\s"\\]+',
            ),
        },
    ),
    Section(
        ("policy",),
        "Values of the policy to use instead of the shipped ones, under their own names.",
        {"flex_wait_seconds": Key(Wants.ANY, "600", "One of them: how long a queued request may wait.")},
        free=True,
    ),
    Section(
        ("intents",),
        "An intent of your own, under its name; it may replace a shipped one.",
        {
            "base_gpus": Key(Wants.ANY, "1", "GPUs that it starts from."),
            "gpu_mem_gib": Key(Wants.ANY, "40", "GPU memory that it needs, per GPU."),
            "base": Key(Wants.ANY, '["a2-ultragpu"]', "Machine families up to that width, in order."),
            "wide": Key(Wants.ANY, '["a2-ultragpu", "a3-highgpu"]', "Machine families above it, in order."),
        },
        named=True,
        free=True,
    ),
    Section(
        ("notify",),
        "A command that is told when a run ends.",
        {"command": Key(Wants.WORDS, '["notify-send", "widelane"]', "Run without a shell.", required=True)},
    ),
)
