"""The tables of keys of a manifest: the reader, the JSON Schema and docs/queue.md are made from them."""

from __future__ import annotations

from typing import Any

from widelane.models.plan import Pointer
from widelane.plan.drafts import Draft
from widelane.plan.kinds import Boolean, Choice, Text
from widelane.plan.reading import Reading
from widelane.plan.records import Key, ListOf, Record
from widelane.queue.axes import ARGS, EXCLUDE, GRID, INCLUDE, ZIP
from widelane.queue.commands import CommandText
from widelane.queue.needs import NeedItem, OneOrMore, PhaseItem
from widelane.queue.rules import BREAKER, COUNT, MIB, OUTPUTS, RULE_KEYS, SOME, WAVE, Filled

_PHASE = Text("a name of letters, digits, `.`, `_` and `-`, at most 63", "train", r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_LINE = Text("a text on one line", "gpu-server", single_line=True)
_FOLDER = Filled("a folder", "experiments")
_NEEDS = OneOrMore(NeedItem(), "a need, or a list of them")
_DEPENDS = OneOrMore(PhaseItem(), "the name of a phase, or a list of names")
_STYLES = ("repeat", "comma", "space")


def _one_command(fields: dict[str, Any], at: Reading, path: Pointer) -> None:
    if fields.get("shell") and "cmd" in fields and fields["cmd"].words is not None:
        message = "`shell: true` wants `cmd` as one text; a list of words needs no shell."
        at.report_at((*path, "shell"), "contradiction", message, "Remove `shell`, or write the text.")


def _one_output_key(fields: dict[str, Any], at: Reading, path: Pointer) -> None:
    names = [name for name in ("outputs", "expected_output", "output_check") if at.has(path, name)]
    for name in names[1:]:
        at.report_at((*path, name), "contradiction", f"`{names[0]}` and `{name}` are the same.", "Keep one.")


def _one_source_of_jobs(fields: dict[str, Any], at: Reading, path: Pointer) -> None:
    grid = [name for name in ("grid", "zip", "include", "exclude", "template") if at.has(path, name)]
    if at.has(path, "jobs") and grid:
        message = f"`jobs` lists the jobs, and `{grid[0]}` makes them."
        at.report_at((*path, grid[0]), "contradiction", message, "Keep one, or put them into two phases.")


def _phases_or_jobs(fields: dict[str, Any], at: Reading, path: Pointer) -> None:
    both = [name for name in ("jobs", "grid", "zip", "include", "template") if at.has(path, name)]
    if at.has(path, "phases") and both:
        message = f"`phases` and `{both[0]}` both hold jobs."
        at.report_at((*path, both[0]), "contradiction", message, "Move these into a phase of their own.")
    _one_source_of_jobs(fields, at, path)


def _one_host(fields: dict[str, Any], at: Reading, path: Pointer) -> None:
    if at.has(path, "host", "ssh"):
        message = "`host` and `ssh` both say where the jobs run."
        at.report_at((*path, "ssh"), "contradiction", message, "Keep one.")


_GPUS = Key(COUNT, "Cards that one job uses; 0 for work without. Default 1.")
_GRID_KEYS = {
    "grid": Key(GRID, "Keys with their values; every combination is a job.", words=("matrix", "sweep", "params")),
    "zip": Key(ZIP, "Keys whose values go together, first with first; combined with `grid`."),
    "include": Key(INCLUDE, "More combinations; each has every key."),
    "exclude": Key(EXCLUDE, "Combinations to leave out: those with these values."),
}

JOB = Record(
    "a job",
    "a mapping with what it runs",
    "{id: s1, args: {seed: 1}}",
    {
        "id": Key(
            Filled("an id", '"N${N}-s${seed}"'),
            "Letters, digits and `._=+-`, at most 128, once in the run. Absent: made of the values.",
            words=("name",),
        ),
        "cmd": Key(
            CommandText(), "What runs, without a shell; absent: `default_cmd`.", words=("command", "run", "script")
        ),
        "args": Key(ARGS, "Added behind as `--KEY VALUE`; true: the flag alone; null and false: nothing."),
        "arg_lists": Key(
            Choice("how lists in `args` are written", {style: style for style in _STYLES}, _STYLES),
            "A list in `args`: repeat (`--k 1 --k 2`, default), comma (`--k 1,2`) or space (`--k 1 2`).",
        ),
        "shell": Key(Boolean(), "`cmd` is for bash; values in it are quoted. Default false."),
        "cwd": Key(_FOLDER, "Folder that it runs in, from the manifest's `cwd`."),
        "expected_output": Key(OUTPUTS, "Files that it must write, from its folder: paths or globs.", field="outputs"),
        "outputs": Key(OUTPUTS, "The same."),
        "output_check": Key(OUTPUTS, "The same.", field="outputs"),
        "needs": Key(_NEEDS, "What must have succeeded first: jobs, phases, or jobs of a phase with the same values."),
        "gpus": _GPUS,
        **RULE_KEYS,
    },
    Draft,
    (_one_command, _one_output_key),
)

PHASE = Record(
    "a phase",
    "a mapping with the phase's keys",
    "{name: train, jobs: [...]}",
    {
        "name": Key(_PHASE, "Its name.", required=True, words=("id",)),
        "depends_on": Key(_DEPENDS, "Phases that must succeed first.", words=("after", "depends")),
        "needs": Key(_NEEDS, "The same for every job of the phase, with jobs and matching jobs too."),
        **_GRID_KEYS,
        "template": Key(JOB, "What each combination runs.", words=("job",)),
        "jobs": Key(ListOf(JOB, "a list of jobs"), "Or its jobs one by one."),
        "allow_empty": Key(Boolean(), "A phase without jobs is none to complain of. Default false."),
        "max_parallel": Key(SOME, "Jobs of the phase at a time."),
        "wave": Key(WAVE, "Start in groups. Absent: a job starts whenever there is room.", words=("waves",)),
        "breaker": Key(BREAKER, "When a phase whose jobs all end alike is paused."),
        "gpus": _GPUS,
        **RULE_KEYS,
    },
    Draft,
    (_one_source_of_jobs,),
)

MANIFEST = Record(
    "a manifest",
    "a mapping with `jobs`, `grid` or `phases`",
    "{project: demo, jobs: [...]}",
    {
        "project": Key(_LINE, "Name of the work, shown with it.", words=("name",)),
        "host": Key(
            Text("local, ssh.NAME or slurm.NAME", "ssh.box", single_line=True),
            "Where it runs: local (default), or a host or cluster of widelane.toml.",
        ),
        "ssh": Key(_LINE, "Or a host as `ssh` knows it.", words=("server",)),
        "cwd": Key(_FOLDER, "Folder on the host that jobs run in. Default: on this machine the manifest's own."),
        "conda": Key(_LINE, "Conda environment of the jobs. Absent or `none`: none is activated."),
        "conda_hook": Key(
            _LINE, 'The conda program, or the whole `eval "$(... hook)"` line. Absent: it is looked for.'
        ),
        "default_cmd": Key(CommandText(), "What jobs without `cmd` run, with their `args` behind it."),
        "jobs": Key(ListOf(JOB, "a list of jobs"), "Jobs one by one."),
        **_GRID_KEYS,
        "template": Key(JOB, "What each combination of `grid` runs."),
        "phases": Key(ListOf(PHASE, "a list of phases", least=1), "Groups of jobs that wait for one another."),
        "gpus": Key(
            OneOrMore(COUNT, "a list of card indices"), "Cards that may be used, by index. Default: all of the host."
        ),
        "cpu_slots": Key(SOME, "Jobs without cards at a time. Default: as many as the host has cores."),
        "max_parallel": Key(SOME, "Jobs at a time. Default: as the cards allow."),
        "gpu_free_threshold_mib": Key(MIB, "A card with at most so much memory in use is free. Default 500."),
        "gpu_headroom_mib": Key(MIB, "Memory that stays free where jobs share a card. Default 512."),
        "shell": Key(Boolean(), "`default_cmd` is for bash. Default false."),
        "analyze_on_complete": Key(Boolean(), "Read and kept from older manifests; the report is always written."),
        "wave": Key(WAVE, "Of every phase that has none."),
        "breaker": Key(BREAKER, "Of every phase that has none."),
        **RULE_KEYS,
    },
    Draft,
    (_phases_or_jobs, _one_host),
)
