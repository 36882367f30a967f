"""The tables of keys that say how jobs run: retries, cards, outputs, preconditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from yaml.nodes import MappingNode, Node, ScalarNode

from widelane.models.plan import Pointer
from widelane.plan.kinds import LARGEST, Boolean, Choice, Number, Schema, Text
from widelane.plan.reading import Reading
from widelane.plan.records import Key, ListOf, Record
from widelane.plan.values import MapOf
from widelane.queue.commands import CommandText
from widelane.queue.needs import OneOrMore
from widelane.queue.text import Pattern, pattern

SECONDS = Number("seconds, 0 or more", "120", low=0)
POSITIVE_SECONDS = Number("seconds greater than 0", "3600")
COUNT = Number("a whole number, 0 or more", "1", 0, LARGEST, integer=True)
SOME = Number("a whole number, 1 or more", "8", 1, LARGEST, integer=True)
MIB = Number("a whole number of MiB, 0 or more", "500", 0, LARGEST, integer=True)
_ON_FAILED = ("hold", "skip", "run")
_ON_UNMET = ("hold", "fail", "skip")
CODE = Number("an exit code from 0 to 255", "0", 0, 255, integer=True)


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with placeholders. With `braced`, `{name}` is one too."""

    wanted: str
    example: str
    braced: bool = False
    blank: bool = False

    def read(self, node: Node, at: Reading, path: Pointer) -> Pattern | None:
        """The text, cut at its placeholders."""
        text = Text(self.wanted, self.example, blank=self.blank).read(node, at, path)
        return None if text is None else pattern(text.strip("\n"), node, braced=self.braced)

    def schema(self) -> Schema:
        """A JSON string."""
        return {"type": ["string", "number", "boolean"]}


def as_fields(fields: dict[str, Any], path: Pointer) -> dict[str, Any]:
    """The fields as they were read."""
    return fields


class ExitCodes:
    """How often single exit codes are tried again."""

    wanted = "a mapping from exit code to how often"
    example = "{75: 3}"

    def read(self, node: Node, at: Reading, path: Pointer) -> tuple[tuple[int, int], ...] | None:
        """(exit code, times) pairs."""
        if not isinstance(node, MappingNode):
            at.wrong(node, path, self.wanted, self.example)
            return None
        pairs: list[tuple[int, int]] = []
        for key, value in cast("list[tuple[Node, Node]]", node.value):
            code = CODE.read(key, at, path)
            times = COUNT.read(value, at, path)
            if code is not None and times is not None:
                pairs.append((int(code), int(times)))
        return tuple(pairs)

    def schema(self) -> Schema:
        """A JSON object with exit codes for names."""
        return {"type": "object", "propertyNames": {"pattern": "^[0-9]+$"}, "additionalProperties": COUNT.schema()}


RETRY = Record(
    "`retry`",
    "a mapping from class of failure to how often it is tried again",
    "{lost: 1, exit: 2}",
    {
        "exit": Key(COUNT, "Another exit code than those of success. Default 0."),
        "signal": Key(COUNT, "Ended by a signal that is no sign of memory. Default 0."),
        "timeout": Key(COUNT, "Took longer than `timeout`. Default 0."),
        "lost": Key(COUNT, "The host went away under it. Default 1."),
        "output_missing": Key(COUNT, "Ended well without its outputs. Default 0."),
        "output_stale": Key(COUNT, "Ended well and left old outputs as they were. Default 0."),
        "spawn_error": Key(COUNT, "Could not be started. Default 1."),
        "codes": Key(ExitCodes(), "Single exit codes, instead of `exit`."),
        "host_oom": Key(COUNT, "The host's memory ran out. Default 0."),
        "shm": Key(COUNT, "The host's shared memory ran out. Default 0."),
        "delay": Key(SECONDS, "Seconds before the first retry. Default 1."),
        "backoff": Key(
            Number("a factor from 1 to 100", "2", 1, 100),
            "What each further delay grows by. Default 2.",
            field="factor",
        ),
        "max_delay": Key(SECONDS, "The longest delay. Default 3600.", field="cap"),
        "jitter": Key(
            Number("a share from 0 to 1", "0.1", 0, 1), "Share of a delay that is left to chance. Default 0.1."
        ),
    },
    as_fields,
)


def _variable(name: str) -> tuple[str, str] | None:
    if not name.replace("_", "a").isalnum() or name[:1].isdigit() or not name.isascii():
        return f"`{name}` can't name an environment variable.", "Use letters, digits and _, as in `HF_HOME`."
    if name.startswith("WIDELANE_") or name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        return f"`{name}` is set by widelane for every job.", "Remove it; `gpus` says which cards and how many."
    return None


ENVIRONMENT = MapOf(
    Filled("a text", "value", blank=True), "a mapping from variable to text", "{HF_HOME: /data/hf}", _variable
)
GPU_SELECT = Record(
    "`gpu_select`",
    "a mapping with `min_total_mib` or `name`",
    "{min_total_mib: 40000}",
    {
        "min_total_mib": Key(MIB, "Memory of the card, in MiB."),
        "name": Key(Text("a part of a card's name", "A100"), "A part of its name; case doesn't matter."),
    },
    as_fields,
)
ESCALATION = Record(
    "a step of `escalate`",
    "a mapping of what the next attempt has otherwise",
    "{args: {batch: 8}}",
    {
        "args": Key(
            MapOf(Text("a value", "8", blank=True), "a mapping of args", "{batch: 8}", lambda name: None),
            "Values that replace those of the same args.",
        ),
        "env": Key(ENVIRONMENT, "Variables beside those of the job."),
        "gpu_mem_mib": Key(SOME, "Memory on each card."),
        "gpu_select": Key(GPU_SELECT, "Which cards will do."),
        "exclusive": Key(Boolean(), "Alone on its cards."),
    },
    as_fields,
)
OOM_RETRY = Record(
    "`oom_retry`",
    "a mapping with `delay` and `max_attempts`",
    "{delay: 120, max_attempts: 3}",
    {
        "delay": Key(SECONDS, "Seconds before a job that ran out of memory starts again. Default 120."),
        "max_attempts": Key(SOME, "Launches of one job at most, whatever it ended with."),
        "escalate": Key(
            ListOf(ESCALATION, "a list of steps"), "What a job gets that can't fit as it is, step by step."
        ),
    },
    as_fields,
)
WAVE = Record(
    "`wave`",
    "a mapping with `size`",
    "{size: 8, barrier: true}",
    {
        "size": Key(SOME, "Jobs of one wave.", required=True),
        "barrier": Key(Boolean(), "A wave starts when nothing of the one before is left. Default true."),
    },
    as_fields,
)
BREAKER = Record(
    "`breaker`",
    "a mapping with `failures` and `seconds`",
    "{failures: 3, seconds: 60}",
    {
        "failures": Key(COUNT, "Jobs that end alike before the phase is paused; 0: never. Default 3."),
        "seconds": Key(POSITIVE_SECONDS, "Within so many seconds. Default 60."),
    },
    as_fields,
)
OUTPUT = Record(
    "an output",
    "a path, or a mapping with `path`",
    "{path: out/*.json, min: 2}",
    {
        "path": Key(Filled("a path or a glob", '"out/${job.id}.json"'), "Path or glob.", required=True),
        "min": Key(SOME, "Files that must match. Default 1."),
        "min_bytes": Key(COUNT, "Least size of each. Default 0."),
        "json": Key(Boolean(), "Each must be JSON. Default false."),
    },
    as_fields,
)


class OutputItem:
    """A path or glob, or a mapping with conditions."""

    wanted = "a path or a glob, or `{path: ..., min: ...}`"
    example = '"out/${job.id}.json"'

    def read(self, node: Node, at: Reading, path: Pointer) -> dict[str, Any] | None:
        """The fields of an output; its path is a pattern."""
        if isinstance(node, MappingNode):
            return cast("dict[str, Any] | None", OUTPUT.read(node, at, path))
        if isinstance(node, ScalarNode):
            text = Filled(self.wanted, self.example).read(node, at, path)
            return None if text is None else {"path": text}
        at.wrong(node, path, self.wanted, self.example)
        return None

    def schema(self) -> Schema:
        """A JSON string or an object."""
        return {"anyOf": [{"type": "string", "minLength": 1}, OUTPUT.schema()]}


_TYPES: dict[str, tuple[str, ...]] = {
    "file": ("path",),
    "glob": ("path",),
    "command": ("cmd",),
    "env_witness": ("provider",),
    "disk_free": ("gib",),
    "gpu_total": ("count",),
    "not_before": ("time",),
}
"""Types of precondition, and the keys that each needs."""
_ALSO = {
    "glob": ("min",),
    "env_witness": ("hash",),
    "disk_free": ("path",),
}


def _has_its_keys(fields: dict[str, Any], at: Reading, path: Pointer) -> None:
    kind = fields.get("type")
    if kind is None:
        return
    for key in _TYPES[kind]:
        if not at.has(path, key):
            at.report_at((*path, "type"), "missing_key", f"`{kind}` needs `{key}`.", f"Add `{key}`.")
    known = {*_TYPES[kind], *_ALSO.get(kind, ()), "type", "on_unmet", "timeout"}
    for key in PRECONDITION.keys:
        if key not in known and at.has(path, key):
            at.report_at((*path, key), "unknown_key", f"`{key}` says nothing for `{kind}`.", "Remove it.")


PRECONDITION = Record(
    "a precondition",
    "a mapping with `type`",
    "{type: file, path: data/train.bin}",
    {
        "type": Key(
            Choice("a type", {**{name: name for name in _TYPES}, "checkpoint_exists": "file"}, tuple(_TYPES)),
            "file (or checkpoint_exists), glob, command, env_witness, disk_free, gpu_total or not_before.",
            required=True,
        ),
        "path": Key(
            Filled("a path", '"ckpt/N{N}.pt"', braced=True), "With file, glob and disk_free. `{name}` is filled in too."
        ),
        "min": Key(SOME, "With glob: files that must match. Default 1."),
        "cmd": Key(CommandText(), "With command: what must exit with 0."),
        "provider": Key(Text("a provider", "torch"), "With env_witness: whose recorded environment counts."),
        "hash": Key(Text("8 hex digits", "1a2b3c4d", "[0-9a-f]{8}"), "With env_witness: of this very specification."),
        "gib": Key(Number("GiB greater than 0", "50"), "With disk_free: what must be free."),
        "count": Key(SOME, "With gpu_total: cards that the host must have."),
        "time": Key(Text("a time with its zone", '"2026-12-24T18:00:00Z"'), "With not_before."),
        "on_unmet": Key(
            Choice("what follows", {word: word for word in _ON_UNMET}, _ON_UNMET),
            "hold (default), fail or skip.",
        ),
        "timeout": Key(
            POSITIVE_SECONDS, "Seconds after which a job that is held fails; of a command, how long it may take."
        ),
    },
    as_fields,
    (_has_its_keys,),
)

RULE_KEYS: dict[str, Key] = {
    "gpu_mem_mib": Key(SOME, "Memory that a job takes on each of its cards; jobs that fit together share one."),
    "exclusive": Key(Boolean(), "No other job on its cards, whatever fits. Default false."),
    "gpu_select": Key(GPU_SELECT, "Which cards will do."),
    "timeout": Key(POSITIVE_SECONDS, "Seconds after which an attempt is ended."),
    "grace": Key(SECONDS, "Seconds between TERM and KILL. Default 10."),
    "success_codes": Key(ListOf(CODE, "a list of exit codes", least=1), "Exit codes of success. Default [0]."),
    "if_exists": Key(
        Choice("what follows", {"skip": "skip", "run": "run"}, ("skip", "run")),
        "skip: a job whose outputs are all there counts as succeeded. Default run.",
    ),
    "on_failed_need": Key(
        Choice("what follows", {word: word for word in _ON_FAILED}, _ON_FAILED),
        "When what a job needs failed: hold (default), skip or run.",
        field="on_need_failed",
        words=("on_failure",),
    ),
    "retry": Key(RETRY, "How often each class of failure is tried again.", words=("retries",)),
    "oom_retry": Key(OOM_RETRY, "What follows an out-of-memory end."),
    "env": Key(ENVIRONMENT, "Variables of the jobs; those further in replace those further out."),
    "preconditions": Key(
        ListOf(PRECONDITION, "a list of preconditions"), "What must hold before a job starts; they add up."
    ),
}
"""Keys that a manifest, a phase and a job have alike."""
OUTPUTS = OneOrMore(OutputItem(), "a path, or a list of outputs")
