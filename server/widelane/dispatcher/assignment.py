"""What a dispatch has to do: its units, which of them have a record, and the list that a host is given."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from math import ceil

from widelane.dispatcher.spec import for_attempt, make_spec
from widelane.errors import NotFoundError
from widelane.facts import Policy
from widelane.ledger import RunState
from widelane.ledger.events import RequestedPhase
from widelane.models.plan import Phase, Plan
from widelane.router import Bench, UnitList, UnitSalt, fence_seconds, make_units, static_shards
from widelane.store import Store, unit_records, write_spec


@dataclass(slots=True)
class Assignment:
    """One phase of a run, as work. Asks the store each time; remembers only what can't change."""

    run: RunState
    plan: Plan
    phase: Phase
    bench: Bench
    store: Store

    @property
    def policy(self) -> Policy:
        """The policy of the run."""
        return self.bench.policy

    def units(self, width: int | None = None) -> UnitList | None:
        """The units; None while a static split waits for its first lease and no `width` is given."""
        shards = None
        if static_shards(self.phase):
            shards = self._kept_shards()
            if shards is None:
                if not width:
                    return None
                shards = self._shards_at(width)
        group = self._group()
        return make_units(self.phase, shards=shards, salt=self._salt(), group=group)

    def count_done(self) -> tuple[int | None, int]:
        """(units, units with a record); the first is None while a static split has no count."""
        units = self.units()
        if units is None:
            return None, 0
        return len(units.units), len(unit_records(self.store, [unit.digest for unit in units.units]))

    def complete(self) -> bool:
        """Whether every unit and the merge have a record."""
        units = self.units()
        if units is None:
            return False
        digests = self.digests(units)
        return len(unit_records(self.store, digests)) == len(digests)

    def digests(self, units: UnitList) -> list[str]:
        """Digests of everything that gets a record, the merge last."""
        merge = (units.merge,) if units.merge is not None else ()
        return [unit.digest for unit in (*units.units, *merge)]

    def keep_shards(self, width: int) -> None:
        """Fix the number of a static split at the first lease; later ones keep it."""
        if static_shards(self.phase):
            shards = self._shards_at(width)
            self.store.put_if_absent(self._shards_key(), json.dumps({"shards": shards}).encode())

    def write_spec(self, attempt_id: str, width: int) -> str:
        """Put the unit list of an attempt into the store; its key."""
        units = self.units(width)
        assert units is not None, "a width was given"
        requested = self._requested()
        spec = make_spec(self.run, requested, self.phase, units, self._input_records())
        spec = for_attempt(spec, attempt_id, width, cpu_slots=os.cpu_count() or 1)
        return write_spec(self.store, requested.dispatch_id, attempt_id, spec)

    def fence_seconds(self, width: int) -> int:
        """The server-side run limit of a machine of that width."""
        return fence_seconds(self._requested().verdict, width, self.policy)

    def disk_gib(self) -> int | None:
        """The boot disk that the plan needs, GiB."""
        needed = self.phase.needs.disk_gib
        return None if needed is None else ceil(needed)

    def _requested(self) -> RequestedPhase:
        requested = self.run.phase_named(self.phase.name)
        assert requested is not None, "a dispatch is of a phase of its run"
        return requested.requested

    def _group(self) -> int | None:
        """GPUs of one unit as the verdict took them; a phase that the run leaves out has the plan's."""
        requested = self.run.phase_named(self.phase.name)
        return requested.requested.verdict.gpus_per_shard or None if requested is not None else None

    def _shards_at(self, width: int) -> int:
        return max(1, width // (self._group() or 1))

    def _salt(self) -> UnitSalt:
        return UnitSalt(
            source_digest=self.run.requested.sources.get(self.phase.name, ""),
            input_digests=self._input_digests(),
            generation=self.run.requested.generation,
        )

    def _before(self) -> list[Assignment]:
        phases = {phase.name: phase for phase in self.plan.phases}
        return [Assignment(self.run, self.plan, phases[name], self.bench, self.store) for name in self.phase.after]

    def _input_records(self) -> tuple[str, ...]:
        """Digests of every record of the phases before."""
        found: list[str] = []
        for work in self._before():
            units = work.units()
            found += work.digests(units) if units is not None else []
        return tuple(found)

    def _input_digests(self) -> tuple[str, ...]:
        """What the phases before put out, by content: one digest a phase."""
        digests: list[str] = []
        for work in self._before():
            units = work.units()
            records = unit_records(self.store, work.digests(units)) if units is not None else {}
            outputs = sorted((output.path, output.sha256) for record in records.values() for output in record.outputs)
            digests.append(hashlib.sha256(json.dumps(outputs).encode()).hexdigest())
        return tuple(digests)

    def _shards_key(self) -> str:
        return f"shards/{self._requested().dispatch_key}{self.run.requested.generation}.json"

    def _kept_shards(self) -> int | None:
        try:
            data = self.store.get(self._shards_key())
        except NotFoundError:
            return None
        return int(json.loads(data)["shards"])
