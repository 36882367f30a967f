"""What a host is to run, read from the store. Raises `SpecError` with the key at fault."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Optional, Union

Gpus = Union[int, str]


class SpecError(ValueError):
    """A spec that can't be run. `lease` is set when that much could be read."""

    lease = ""


@dataclass(frozen=True)
class Task:
    """A unit, or the merge. `gpus` is a number, or "all"; `index` is -1 for the merge."""

    name: str
    index: int
    digest: str
    argv: tuple[str, ...]
    outputs: tuple[str, ...]
    gpus: Gpus
    env: dict[str, str]


@dataclass(frozen=True)
class Limits:
    """Seconds that a host waits: for a process after TERM, and for a store that fails."""

    grace: float = 10.0
    store_patience: float = 120.0


@dataclass(frozen=True)
class Spec:
    """One dispatch on one lease."""

    run_id: str
    dispatch_id: str
    lease: str
    phase: str
    requested_width: int
    expected_width: int
    source: Optional[tuple[str, str]]
    """(sha256, key)"""
    inputs: tuple[str, ...]
    workdir: str
    env: dict[str, str]
    cpu_slots: int
    setup: Optional[tuple[str, ...]]
    units: tuple[Task, ...]
    merge: Optional[Task]
    limits: Limits


class _Reader:
    """Typed access to a JSON object; `at` names it in errors."""

    def __init__(self, value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise SpecError(f"{at}: expected an object")
        self.value: dict[str, Any] = value
        self.at = at

    def get(self, key: str, kind: type, default: Any = None) -> Any:
        found = self.value.get(key, default)
        if found is None and default is None and key not in self.value:
            raise SpecError(f"{self.at}.{key}: missing")
        if not isinstance(found, kind) or isinstance(found, bool):
            raise SpecError(f"{self.at}.{key}: expected {kind.__name__}, found {found!r:.60}")
        return found

    def optional(self, key: str) -> Optional[_Reader]:
        found = self.value.get(key)
        return None if found is None else _Reader(found, f"{self.at}.{key}")

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.get(key, list, [])
        if not all(isinstance(item, str) for item in found):
            raise SpecError(f"{self.at}.{key}: expected a list of texts")
        return tuple(found)

    def argv(self) -> tuple[str, ...]:
        argv = self.texts("argv")
        if not argv:
            raise SpecError(f"{self.at}.argv: empty")
        return argv

    def env(self) -> dict[str, str]:
        found = self.get("env", dict, {})
        if not all(isinstance(value, str) for value in found.values()):
            raise SpecError(f"{self.at}.env: values are texts")
        return dict(found)

    def outputs(self) -> tuple[str, ...]:
        found = self.texts("outputs")
        for pattern in found:
            relative(pattern, f"{self.at}.outputs")
            if any("**" in part and part != "**" for part in PurePosixPath(pattern).parts):
                raise SpecError(f"{self.at}.outputs: {pattern!r}: ** stands alone between slashes")
        return found


def relative(path: str, at: str) -> str:
    """The path itself. Raises `SpecError` when it is empty, absolute or climbs."""
    pure = PurePosixPath(path)
    if not pure.parts or pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise SpecError(f"{at}: {path!r} isn't a path below the work folder")
    return path


def parse(data: bytes) -> Spec:
    """The spec. Raises `SpecError`."""
    try:
        top = _Reader(json.loads(data), "spec")
    except SpecError:
        raise
    except ValueError as error:
        raise SpecError(f"not JSON: {error}") from error
    try:
        return _parse(top)
    except SpecError as error:
        lease = top.value.get("lease")
        error.lease = lease if isinstance(lease, str) else ""
        raise


def _parse(top: _Reader) -> Spec:
    if top.get("spec", int) != 1:
        raise SpecError(f"spec.spec: this runner reads form 1, not {top.value['spec']!r}")
    source = top.optional("source")
    setup = top.optional("setup")
    merge = top.optional("merge")
    workdir = top.get("workdir", str, "")
    units = tuple(_unit(_Reader(item, f"spec.units[{i}]")) for i, item in enumerate(top.get("units", list)))
    names = {unit.name for unit in units}
    if len(names) < len(units):
        raise SpecError("spec.units: an index occurs twice")
    return Spec(
        run_id=top.get("run_id", str),
        dispatch_id=top.get("dispatch_id", str),
        lease=top.get("lease", str),
        phase=top.get("phase", str, ""),
        requested_width=top.get("requested_width", int),
        expected_width=top.get("expected_width", int),
        source=None if source is None else (source.get("sha256", str), source.get("key", str)),
        inputs=top.texts("inputs"),
        workdir=relative(workdir, "spec.workdir") if workdir else "",
        env=top.env(),
        cpu_slots=top.get("cpu_slots", int, 0),
        setup=None if setup is None else setup.argv(),
        units=units,
        merge=None if merge is None else _task(merge, "merge", -1, "all"),
        limits=_limits(top.optional("limits")),
    )


def _unit(reader: _Reader) -> Task:
    index = reader.get("index", int)
    gpus = reader.value.get("gpus", 1)
    if gpus != "all" and (not isinstance(gpus, int) or isinstance(gpus, bool) or gpus < 0 or index < 0):
        raise SpecError(f'{reader.at}: index and gpus are numbers from 0, gpus may be "all"')
    return _task(reader, str(index), index, gpus)


def _task(reader: _Reader, name: str, index: int, gpus: Gpus) -> Task:
    return Task(name, index, reader.get("digest", str), reader.argv(), reader.outputs(), gpus, reader.env())


def _limits(reader: Optional[_Reader]) -> Limits:
    if reader is None:
        return Limits()
    given = {key: reader.value[key] for key in ("grace", "store_patience") if key in reader.value}
    if not all(isinstance(value, (int, float)) and value >= 0 for value in given.values()):
        raise SpecError("spec.limits: seconds from 0")
    return Limits(**given)
