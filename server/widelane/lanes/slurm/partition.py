"""What a partition holds, read from sinfo's rows: GPUs, CPUs and memory of a node, and how long a job may run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil

from widelane.config.timelimit import seconds_of

_BRACKETS = re.compile(r"\([^)]*\)")
_AWAY = ("down", "drain", "drng", "fail", "inval", "maint", "boot^", "unk", "pow_dn", "plnd^")
_MEMORY_SHARE = 0.9
"""Of its share of a node's memory: the system and other jobs keep the rest."""


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `memory_mib` is what the configuration says."""

    name: str
    gpus: int
    cpus: int
    memory_mib: int
    there: bool
    """False: down, drained or otherwise not to be had for now."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a job on one node asks for beside its GPUs."""

    cpus: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class Partition:
    """The nodes that a job of ours may get. `seconds` is None without a limit."""

    nodes: tuple[Node, ...]
    seconds: int | None

    @property
    def gpus(self) -> int:
        """The most GPUs of one node, of those that are there if any is."""
        return max((node.gpus for node in self._counted), default=0)

    def share(self, gpus: int) -> Share:
        """A fair share of the smallest node that holds so many GPUs, so that every such node can take the job."""
        holding = [node for node in self._counted if node.gpus >= gpus]
        if not holding:
            return Share(max(1, gpus), 0)
        parts = [gpus / node.gpus if gpus else 1 / max(1, node.cpus) for node in holding]
        return Share(
            cpus=max(1, min(int(node.cpus * part) for node, part in zip(holding, parts, strict=True))),
            memory_mib=min(
                int(node.memory_mib * part * _MEMORY_SHARE) for node, part in zip(holding, parts, strict=True)
            ),
        )

    @property
    def _counted(self) -> tuple[Node, ...]:
        there = tuple(node for node in self.nodes if node.there)
        return there or self.nodes


def read_partition(rows: Iterable[Mapping[str, str]], name: str, gpu: str) -> Partition | None:
    """The partition of that name, or the default one for ""; None when there is no such.

    `gpu`: only GPUs of that type count.
    """
    chosen = [row for row in rows if (row["partition"] == name if name else row["partition"].endswith("*"))]
    chosen += [row for row in rows if name and row["partition"] == f"{name}*"]
    if not chosen:
        return None
    return Partition(tuple(_node(row, gpu) for row in chosen), seconds_of(chosen[0]["limit"]))


def minutes_of(seconds: int) -> int:
    """What `--time` takes; SLURM counts in whole minutes."""
    return max(1, ceil(seconds / 60))


def gpus_of(gres: str, gpu: str = "") -> int:
    """GPUs of a node by its GRES column, `gpu:a100:8(S:0-1),shard:16`; with `gpu`, only those of that type."""
    count = 0
    for item in _BRACKETS.sub("", gres).split(","):
        name, *rest = item.strip().split(":")
        number = int(rest.pop()) if rest and rest[-1].isdigit() else 1
        if name == "gpu" and (not gpu or rest == [gpu]):
            count += number
    return count


def _node(row: Mapping[str, str], gpu: str) -> Node:
    state = row["state"].lower()
    return Node(
        name=row["node"],
        gpus=gpus_of(row["gres"], gpu),
        cpus=_number(row["cpus"]),
        memory_mib=_number(row["memory"]),
        there=not state.endswith("*") and not state.startswith(_AWAY),
    )


def _number(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found.group()) if found else 0
