"""From the fields of rules and preconditions to the runner's keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from widelane.models.plan import Pointer
from widelane.models.queue import Late, Word
from widelane.plan.drafts import Fields
from widelane.plan.reading import Reading
from widelane.queue.commands import program
from widelane.queue.text import Pattern

_PLAIN = (
    *("gpus", "gpu_mem_mib", "exclusive", "gpu_select", "timeout", "grace", "if_exists", "on_need_failed"),
    "success_codes",
)
_NAMES = {"file": {"path": "path"}, "glob": {"path": "pattern", "min": "min"}, "gpu_total": {"count": "min"}}
_MIB = 1024


def as_json(word: Word) -> str | list[str]:
    """A word as the spec has it: a text, or texts and names in turn."""
    return list(word.parts) if isinstance(word, Late) else word


def rules_of(fields: Fields, outer: Mapping[str, Any]) -> dict[str, Any]:
    """The spec's keys for how jobs run, over those of around; mappings are joined key by key."""
    rules: dict[str, Any] = dict(outer)
    for key in _PLAIN:
        if key in fields:
            rules[key] = list(fields[key]) if key == "success_codes" else fields[key]
    if "retry" in fields:
        given: Fields = dict(fields["retry"])
        if "codes" in given:
            given["codes"] = {str(code): times for code, times in given["codes"]}
        rules["retry"] = {**rules.get("retry", {}), **given}
    if "oom_retry" in fields:
        given = {name: part for name, part in fields["oom_retry"].items() if name != "escalate"}
        rules["oom_retry"] = {**rules.get("oom_retry", {}), **given}
    return rules


def conditions(drafts: Iterable[Fields], scope: Mapping[str, str]) -> list[dict[str, Any]]:
    """Preconditions of one job, with its values filled in."""
    return [_condition(fields, scope) for fields in drafts]


def _condition(fields: Fields, scope: Mapping[str, str]) -> dict[str, Any]:
    kind = fields["type"]
    made: dict[str, Any] = {"kind": kind}
    names = _NAMES.get(kind, {})
    for key, value in fields.items():
        if key in ("type", "cmd"):
            continue
        made[names.get(key, key)] = str(value.fill(scope)) if isinstance(value, Pattern) else value
    if kind == "command":
        made["argv"] = [str(word) for word in fields["cmd"].fill(scope)]
    if kind == "disk_free":
        made["mib"] = round(made.pop("gib") * _MIB)
        made.setdefault("path", ".")
    if kind == "not_before":
        made["at"] = made.pop("time")
    return made


def read_commands(drafts: Iterable[Fields], at: Reading, path: Pointer) -> tuple[Fields, ...]:
    """Preconditions with their commands split into words; what can't be split is reported."""
    read: list[Fields] = []
    for number, fields in enumerate(drafts):
        if "cmd" not in fields:
            read.append(fields)
        elif (words := program(fields["cmd"], False, at, (*path, number, "cmd"))) is not None:
            read.append({**fields, "cmd": words})
    return tuple(read)


def patterns_of(drafts: Iterable[Fields]) -> Iterable[Pattern]:
    """Every text with placeholders in preconditions."""
    for fields in drafts:
        yield from (value for value in fields.values() if isinstance(value, Pattern))
        if "cmd" in fields:
            yield from fields["cmd"].patterns


def escalation(
    step: Fields, scope: Mapping[str, str], argv: Callable[[Mapping[str, str]], tuple[Word, ...]]
) -> dict[str, Any]:
    """One step of `oom_retry.escalate`; `argv` gives the command with other args."""
    made: dict[str, Any] = {key: step[key] for key in ("gpu_mem_mib", "gpu_select", "exclusive") if key in step}
    if "args" in step:
        made["argv"] = [as_json(word) for word in argv(dict(step["args"]))]
    if "env" in step:
        made["env"] = {name: as_json(value.fill(scope)) for name, value in step["env"]}
    return made
