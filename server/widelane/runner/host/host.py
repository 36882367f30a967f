"""The frame around a dispatch on this host: preparation before it, finished.json after it.

Nothing here keeps a promise across a death of the process; `run` may be called again at any time.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Callable, Optional

from .attempt import Record, write_record
from .dispatch import Dispatch, Parts
from .engine import Engine
from .finish import NOTHING, End, finished_key, summary
from .loop import Loop, Stop
from .prepare import boot_id, describe_host, make_work_folder
from .progress import Reporter
from .publish import GaveUpError, Publisher, persist
from .requests import Requests
from .slots import Slots
from .spec import Limits, Spec, SpecError, parse
from .state import State
from .store import Store, StoreMissingError
from .unpack import ArchiveError

_GIVE_UPS = 3


class Host:
    """One try of running a spec in this process."""

    def __init__(self, store: Store, key: str, root: Path, stop: Stop) -> None:
        self._store = store
        self._key = key
        self._root = root
        self._stop = stop

    def run(self) -> str:
        """Run to the end; returns "" once finished.json is written, else what hinders it.

        Raises `SpecError`, and OSError, sqlite3.Error or EngineError for what may pass.
        """
        with contextlib.ExitStack() as stack:
            state = State(self._root / "state.db")
            stack.callback(state.close)
            loop = Loop(self._stop)
            stack.callback(loop.close)
            engine = Engine(loop, state, self._root, Path(sys.argv[0]).resolve())
            stack.callback(engine.close)
            try:
                spec = self._read_spec()
            except SpecError as error:
                return self._refuse(error)
            publisher = Publisher(self._store, spec, self._root / "work")
            frame = _Frame(self._store, self._root, state, spec, publisher)
            if frame.is_finished():
                return ""
            self._claim(state)
            broken = frame.prepare()
            if broken is not None:
                return frame.finish(broken, None)
            slots = frame.slots()
            reporter = Reporter(loop, self._store, f"leases/{spec.lease}/progress.json", self._root / "progress.json")
            stack.callback(reporter.close)
            parts = Parts(loop, state, self._store, engine, slots, publisher, reporter)
            dispatch = Dispatch(spec, Requests(spec, self._root / "work", slots.width), parts)
            stack.callback(dispatch.close)
            dispatch.begin()
            loop.run(lambda: self._turn(dispatch))
            reporter.finish()
            return frame.finish(dispatch.end or End("failed"), dispatch)

    def _turn(self, dispatch: Dispatch) -> bool:
        if self._stop.asked:
            dispatch.cancel()
        return dispatch.turn()

    def _read_spec(self) -> Spec:
        try:
            return parse(persist(lambda: self._store.get(self._key), Limits().store_patience))
        except GaveUpError as error:
            if isinstance(error.__cause__, StoreMissingError):
                raise SpecError(f"not in the store {self._store.url}") from error
            raise

    def _refuse(self, error: SpecError) -> str:
        """A host that can't read its spec still says why, where the lease is known."""
        if not error.lease:
            raise error
        end = End("env_broken", f"{self._key}: {error}")
        data = json.dumps({"state": end.state, "reason": end.reason, **NOTHING}, indent=1).encode()
        persist(lambda: self._store.put_if_absent(finished_key(error.lease), data), Limits().store_patience)
        return ""

    def _claim(self, state: State) -> None:
        """A root folder belongs to one spec."""
        mine = [self._store.url, self._key]
        known = state.meta("spec")
        if known is None:
            state.set_meta("spec", mine)
            state.commit()
        elif known != mine:
            raise SpecError(f"{self._root} belongs to {known[1]} of {known[0]}")


class _Frame:
    """What comes before the first process and after the last."""

    def __init__(self, store: Store, root: Path, state: State, spec: Spec, publisher: Publisher) -> None:
        self._store = store
        self._root = root
        self._state = state
        self._spec = spec
        self._publisher = publisher
        self._key = finished_key(spec.lease)
        self._host: Record = {}

    def is_finished(self) -> bool:
        """Whether finished.json is in the store."""
        return self._patiently(lambda: self._store.exists(self._key))

    def prepare(self) -> Optional[End]:
        """Work folder and host.json; an end when this host can't run the spec at all."""
        self._host = self._describe()
        self._publisher.hostname = self._host["hostname"]
        data = json.dumps(self._host, indent=1).encode()
        self._patiently(lambda: self._store.put(f"leases/{self._spec.lease}/host.json", data))
        if self._spec.expected_width > 0 and not self._host["handles"]:
            return End("env_broken", f"no GPU: {self._host['trouble']}")
        try:
            self._patiently(lambda: make_work_folder(self._root, self._spec, self._store))
        except (ArchiveError, GaveUpError) as error:
            if isinstance(error, GaveUpError) and not isinstance(error.__cause__, StoreMissingError):
                raise
            return End("env_broken", f"work folder: {error}")
        return None

    def slots(self) -> Slots:
        """One slot a GPU, never more than the dispatch asked for; or CPU slots."""
        if self._spec.expected_width > 0:
            return Slots(tuple(self._host["handles"][: self._spec.expected_width]))
        return Slots((), self._spec.cpu_slots or os.cpu_count() or 1)

    def finish(self, end: End, dispatch: Optional[Dispatch]) -> str:
        """Write finished.json, here and in the store; returns what hinders it, or ""."""
        record = self._record(end, dispatch)
        write_record(self._root / "finished.json", record)
        if dispatch is not None and dispatch.gave_up and self._give_ups() < _GIVE_UPS:
            return end.reason
        data = json.dumps(record, indent=1).encode()
        try:
            self._patiently(lambda: self._store.put_if_absent(self._key, data))
        except GaveUpError as error:
            return f"{end.state}: {end.reason}; {error}"
        return ""

    def _record(self, end: End, dispatch: Optional[Dispatch]) -> Record:
        head = {"state": end.state, "reason": end.reason}
        if dispatch is None:
            return {**head, **NOTHING, "total": len(self._spec.units)}
        width = self.slots().width
        return {
            **head,
            **summary(dispatch.board, self._state, width),
            "gpu_seconds_held": round(width * self._held(), 3),
        }

    def _give_ups(self) -> int:
        """How often the store was given up; after a few times that is how the dispatch ends."""
        times = int(self._state.meta("gave_up") or 0) + 1
        self._state.set_meta("gave_up", times)
        self._state.commit()
        return times

    def _held(self) -> float:
        """Seconds since the host was described: by the monotonic clock, unless the machine booted in between."""
        boot, then = self._host["clock"]
        if boot == boot_id():
            return time.monotonic() - float(then)
        return max(0.0, time.time() - float(self._host["started"]))

    def _describe(self) -> Record:
        """Devices are counted once: attempts that are adopted hold slots by number."""
        known: Optional[Record] = self._state.meta("host")
        if known is None:
            known = describe_host(self._spec, os.environ)
            self._state.set_meta("host", known)
            self._state.commit()
        return known

    def _patiently(self, act: Callable[[], object]) -> bool:
        return bool(persist(act, self._spec.limits.store_patience))
