"""From a job as it is written to the jobs that it makes: command, files and conditions of each combination."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from widelane.models.plan import Pointer
from widelane.models.queue import Late, QueueJob, Word
from widelane.plan.drafts import Draft, Fields
from widelane.plan.reading import Reading, shown
from widelane.queue.arguments import Render, Values, flag_of, from_grid, renderer, slots_of
from widelane.queue.commands import Program, program
from widelane.queue.conditions import as_json, conditions, escalation, patterns_of, read_commands, rules_of
from widelane.queue.needs import WrittenNeed
from widelane.queue.scalars import Scalar
from widelane.queue.text import Pattern, check_slots

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+-]{0,127}")
_NO_ID = re.compile(r"[^A-Za-z0-9._=+-]+")
_ID_FIX = "Use letters, digits and `._=+-`, at most 128, a letter or digit first."


@dataclass(frozen=True, slots=True)
class Around:
    """What the jobs of a phase take from around them: `rules` in force there, `defaults` those of the whole run."""

    phase: str
    default_cmd: Program | None
    rules: Mapping[str, Any]
    defaults: Mapping[str, Any]
    salt: str = ""
    """Of digests: what the whole run has in common."""
    env: tuple[tuple[str, Pattern], ...] = ()
    preconditions: tuple[Fields, ...] = ()
    """Those of around whose texts hang on the job's values."""
    prefix: str = ""
    """Of ids that are made of values."""
    commandless: bool = False
    """A job may have no program: the plan of a bare grid."""


@dataclass(slots=True)
class Made:
    """A job, where it stands in the text, its values, and what it waits for as it is written."""

    job: QueueJob
    path: Pointer
    values: dict[str, str]
    needs: tuple[WrittenNeed, ...]


class Template:
    """One job as it is written; checked once, filled in for each combination of the grid's `keys`."""

    def __init__(self, draft: Draft, keys: tuple[str, ...], around: Around, at: Reading) -> None:
        self._fields = fields = draft.fields
        self.path = draft.path
        self._around = around
        self._at = at
        self._keys = keys
        args = fields.get("args", ())
        self._fixed = {key: value for key, value in args if isinstance(value, Scalar) and key not in keys}
        self._program = self._command()
        self._renders = self._arguments()
        self._env: dict[str, Pattern] = dict(around.env) | dict(self._program.env if self._program else ())
        self._env |= dict(fields.get("env", ()))
        own = read_commands(fields.get("preconditions", ()), at, (*draft.path, "preconditions"))
        self._conditions = (*around.preconditions, *own)
        self._rules = rules_of(fields, around.rules)
        self._own = {key: value for key, value in self._rules.items() if around.defaults.get(key) != value}
        self.fine = self._check()

    @property
    def id(self) -> Pattern | None:
        """How ids are written; None when they are made of the values."""
        return self._fields.get("id")

    def make(self, row: tuple[Scalar, ...], number: int) -> Made | None:
        """The job of one combination; None after a report that it can't have the id that comes out."""
        typed = dict(zip(self._keys, row, strict=True)) | self._fixed
        scope = {name: value.word for name, value in typed.items()}
        ident = self._ident(scope, number)
        if ident is None:
            return None
        values = dict(scope)
        scope["job.id"], scope["phase"] = ident, self._around.phase
        argv = self._argv(scope, typed, {})
        extras = self._extras(scope, typed)
        needs: tuple[WrittenNeed, ...] = self._fields.get("needs", ())
        job = QueueJob(ident, self._around.phase, argv, (), extras, digest_of(argv, extras, self._around.salt))
        return Made(job, self.path, values, needs)

    def _extras(self, scope: Mapping[str, str], typed: Values) -> dict[str, Any]:
        fields = self._fields
        extras = dict(self._own)
        if "cwd" in fields:
            extras["cwd"] = as_json(fields["cwd"].fill(scope))
        if self._env:
            extras["env"] = {name: as_json(value.fill(scope)) for name, value in self._env.items()}
        if "outputs" in fields:
            extras["outputs"] = [_output(output, scope) for output in fields["outputs"]]
        if self._conditions:
            extras["preconditions"] = conditions(self._conditions, scope)
        steps = fields.get("oom_retry", {}).get("escalate")
        if steps:
            made = [escalation(step, scope, lambda args: self._argv(scope, typed, args)) for step in steps]
            extras["oom_retry"] = {**self._rules["oom_retry"], "escalate": made}
        return extras

    def _command(self) -> Program | None:
        command = self._fields.get("cmd")
        if command is not None:
            return program(command, bool(self._fields.get("shell")), self._at, (*self.path, "cmd"))
        if self._around.default_cmd is None and not self._around.commandless:
            message = "This job has no `cmd`, and the manifest has no `default_cmd`."
            self._at.report_at(self.path, "missing_key", message, "Write `cmd: python train.py`.")
        return self._around.default_cmd

    def _arguments(self) -> tuple[tuple[str, Render], ...]:
        """Where a grid has neither `args` nor a command of its own, its keys are the arguments."""
        style = self._fields.get("arg_lists", "repeat")
        if "args" in self._fields or "cmd" in self._fields:
            return tuple((key, renderer(key, value, style)) for key, value in self._fields.get("args", ()))
        return tuple((key, from_grid(key)) for key in self._keys)

    def _argv(self, scope: Mapping[str, str], typed: Values, instead: Mapping[str, str]) -> tuple[Word, ...]:
        """The command; arguments in `instead` have other values, or are added."""
        words: list[Word] = list(self._program.fill(scope)) if self._program else []
        added: list[Word] = []
        for key, render in self._renders:
            added += [flag_of(key), instead[key]] if key in instead else render(scope, typed)
        known = {key for key, _ in self._renders}
        added += [word for key, value in instead.items() if key not in known for word in (flag_of(key), value)]
        if added and self._program is not None and self._program.shell:
            return (*words[:2], _behind(words[2], ' "$@"'), "bash", *added)
        return (*words, *added)

    def _ident(self, scope: Mapping[str, str], number: int) -> str | None:
        if self.id is None:
            return self._made_id(scope, number)
        ident = str(self.id.fill({**scope, "phase": self._around.phase})).strip()
        if ID.fullmatch(ident):
            return ident
        self._at.report(self.id.node, "bad_id", f"{shown(ident)} can't be an id.", _ID_FIX)
        return None

    def _made_id(self, scope: Mapping[str, str], number: int) -> str:
        """`train-N64-seed1`: the values, with dashes for characters that an id can't have."""
        parts = [_value_of(key, value) for key, value in scope.items()] or [str(number + 1)]
        text = "-".join([self._around.prefix, *parts] if self._around.prefix else parts)
        text = _NO_ID.sub("-", text).lstrip("._=+-") or f"job{number + 1}"
        if len(text) <= 128:
            return text
        return f"{text[:111]}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def _check(self) -> bool:
        """Report what nothing fills in, wherever it stands."""
        known = {*self._keys, *self._fixed}
        fine = True
        if self.id is not None:
            fine = check_slots(self.id, known, self._at, late=False)
        for one in self._patterns():
            fine &= check_slots(one, known, self._at)
        return fine

    def _patterns(self) -> Iterator[Pattern]:
        fields = self._fields
        if self._program is not None:
            yield from self._program.patterns
        yield from (one for _, value in fields.get("args", ()) for one in slots_of(value))
        yield from (value for _, value in fields.get("env", ()))
        yield from (output["path"] for output in fields.get("outputs", ()))
        yield from (need.name for need in fields.get("needs", ()))
        yield from patterns_of(self._conditions)
        yield from (
            value for step in fields.get("oom_retry", {}).get("escalate", ()) for _, value in step.get("env", ())
        )
        if "cwd" in fields:
            yield fields["cwd"]


def digest_of(argv: tuple[Word, ...], extras: Mapping[str, Any], salt: str) -> str:
    """Of all that makes a job another one: its command, where and with what it runs, what it writes."""
    made_of = {key: extras[key] for key in ("cwd", "env", "outputs") if key in extras}
    text = json.dumps([salt, [as_json(word) for word in argv], made_of], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _value_of(key: str, value: str) -> str:
    """`N64`; with a sign between where the two would run together."""
    return f"{key}={value}" if key[-1].isdigit() or not value[:1].isalnum() else f"{key}{value}"


def _output(output: Fields, scope: Mapping[str, str]) -> Any:
    path = as_json(output["path"].fill(scope))
    return path if len(output) == 1 and isinstance(path, str) else {**output, "path": path}


def _behind(word: Word, text: str) -> Word:
    if isinstance(word, Late):
        return Late((*word.parts[:-1], word.parts[-1] + text))
    return word + text
