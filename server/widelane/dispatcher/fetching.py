"""Brings a run's outputs and logs from its store."""

from __future__ import annotations

from pathlib import Path

from widelane.dispatcher.assembly import plan_of, work_of
from widelane.errors import NotFoundError
from widelane.ledger import RunState
from widelane.models.dispatch import UnitLog
from widelane.store import log_tail, open_store, pull, unit_records


def fetch_outputs(run: RunState, to: Path, phase: str | None) -> tuple[Path, ...]:
    """Write the outputs of every unit that has a record into a folder; the files written.

    Raises:
        NotFoundError: the run has no such phase.
        StoreError: an output is missing in the store or isn't what its record says.
    """
    written: list[Path] = []
    for name in _phases(run, phase):
        work = work_of(run, name)
        units = work.units()
        if units is not None:
            records = unit_records(work.store, work.digests(units))
            written += pull(work.store, records.values(), to)
    return tuple(written)


def fetch_logs(run: RunState, phase: str | None, unit: int | None) -> tuple[UnitLog, ...]:
    """The last part of the logs of a unit's attempts, or of everything without one; oldest lease first, units in order.

    Raises:
        NotFoundError: the run has no such phase, or none of its phases has that unit.
    """
    store = open_store(run.requested.store_url)
    wanted = _phases(run, phase)
    _must_have(run, wanted, unit)
    found: list[UnitLog] = []
    for state in run.phases.values():
        if state.requested.name not in wanted:
            continue
        for attempt in state.attempts:
            lease = attempt.intended.attempt_id
            keys = sorted((key for key in store.list(f"logs/{lease}/") if _wanted(key, unit)), key=_in_order)
            name = state.requested.name
            found += [UnitLog(phase=name, part=_name(key), attempt_id=lease, text=log_tail(store, key)) for key in keys]
    return tuple(found)


def _name(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(".log")


def _wanted(key: str, unit: int | None) -> bool:
    return unit is None or _name(key).rpartition("-")[0] == str(unit)


def _in_order(key: str) -> tuple[int, int, str]:
    """Set-up first, then the units by number, then the merge."""
    name = _name(key)
    unit = name.partition("-")[0]
    if unit.isdecimal():
        return 1, int(unit), name
    return (0 if name == "setup" else 2), 0, name


def _must_have(run: RunState, phases: list[str], unit: int | None) -> None:
    if unit is None:
        return
    counts = {name: len(units.units) for name in phases if (units := work_of(run, name).units()) is not None}
    if len(counts) == len(phases) and unit >= max(counts.values()):
        known = ", ".join(f"{name} has 0 to {count - 1}" for name, count in counts.items())
        raise NotFoundError(f"run {run.run_id} has no unit {unit}", hint=known)


def _phases(run: RunState, phase: str | None) -> list[str]:
    names = [state.requested.name for state in run.phases.values()]
    if phase is None:
        return names
    if phase not in names:
        known = ", ".join(plan_phase.name for plan_phase in plan_of(run).phases)
        raise NotFoundError(f"run {run.run_id} has no phase {phase!r}", hint=f"phases of the plan: {known}")
    return [phase]
