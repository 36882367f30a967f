"""The checks of a SLURM cluster, asked on its login host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from widelane.config import Settings, SlurmSettings
from widelane.config.timelimit import seconds_of
from widelane.lanes.checkup.hosts import SECONDS, look
from widelane.lanes.checkup.sheet import Sheet
from widelane.lanes.slurm.answer import Refusal
from widelane.lanes.slurm.classify import classify
from widelane.lanes.slurm.cluster import WORKDIR
from widelane.lanes.slurm.partition import Partition, read_partition
from widelane.transport import HereLine, Host, PassingLine, Program, Request

CLUSTER = Program(
    (
        "widelane.transport.remote.places",
        "widelane.lanes.slurm.far.commands",
        "widelane.lanes.checkup.far.cluster",
    )
)
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


def examine(sheet: Sheet, settings: Settings, place: str, _env: Mapping[str, str]) -> None:
    """The section, the login host, SLURM's commands, the partition."""
    section = settings.slurm[place]
    _section(sheet, section)
    config = Path(section.ssh_config).expanduser() if section.ssh_config else None
    python = section.python or "python3"
    near = section.host in _HERE
    line = HereLine() if near else PassingLine(sheet.lane, section.host, settings.home, config=config, python=python)
    host = Host(sheet.lane, line)
    if look(sheet, host, section.workdir or WORKDIR, gpus=False) is None:
        return
    told = host.call(Request(CLUSTER, "cluster", {"partition": section.partition}), SECONDS)
    if told["missing"]:
        missing = ", ".join(told["missing"])
        sheet.fail("slurm", f"no {missing} on {section.host}", f"set host in [lanes.{sheet.lane}] to a login host")
        return
    if told["refused"] is not None:
        _refused(sheet, told["refused"])
        return
    sheet.ok("slurm", f"sinfo answers; finished jobs are {'kept in' if told['accounting'] else 'not in'} accounting")
    _partition(sheet, section, read_partition(told["nodes"], section.partition, section.gpu))


def _section(sheet: Sheet, section: SlurmSettings) -> None:
    where = f"[lanes.{sheet.lane}]"
    try:
        seconds_of(section.time_limit)
    except ValueError as error:
        sheet.fail("time_limit", str(error), f"set time_limit in {where} as D-HH:MM:SS")
    wrong = next((option for option in section.options if not option.startswith("-")), None)
    if wrong is not None:
        sheet.fail("options", f"{wrong!r} is no option of sbatch", f'write options in {where} as ["--name=value"]')


def _refused(sheet: Sheet, refused: dict[str, Any]) -> None:
    failure = classify(Refusal(refused["code"] if refused["code"] is not None else 1, refused["text"]))
    fix = failure.hint or "ask the cluster's admins whether its controller is up"
    sheet.fail("slurm", f"{refused['command']}: {failure.message or failure.code}", fix)


def _partition(sheet: Sheet, section: SlurmSettings, partition: Partition | None) -> None:
    where = f"[lanes.{sheet.lane}]"
    if partition is None:
        what = f"no partition {section.partition!r}" if section.partition else "no default partition"
        sheet.fail("partition", what, f"set partition in {where} to one that `sinfo -s` lists")
        return
    there = sum(node.there for node in partition.nodes)
    name = section.partition or "the default partition"
    told = f"{name}: {there} of {len(partition.nodes)} nodes are there"
    if there == 0:
        sheet.warn("partition", told, "wait, or choose another partition: jobs would wait for nodes to come back")
    else:
        sheet.ok("partition", told)
    kind = f" of type {section.gpu}" if section.gpu else ""
    if partition.gpus == 0:
        sheet.warn("gpus", f"no node has GPUs{kind}", f"set partition or gpu in {where}, or use it for CPU work only")
    elif section.gpus is not None and section.gpus != partition.gpus:
        message = f"the largest node has {partition.gpus}{kind}, the section says {section.gpus}"
        sheet.warn("gpus", message, f"set gpus = {partition.gpus} in {where}")
    else:
        sheet.ok("gpus", f"up to {partition.gpus}{kind} on a node")
