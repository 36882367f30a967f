"""The command line of the runner file, and the frame around a dispatch: lock, preparation, finished.json.

Exit codes: 0 finished.json is written; 1 something failed and the same command may be given again; 2 the arguments
or the spec can't be used; 3 another process holds the root folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, Optional

from .attempt import Record, locked, write_record
from .dispatch import Dispatch, Parts
from .engine import Engine, EngineError
from .loop import Loop
from .prepare import describe_host, work_folder
from .progress import Reporter
from .publish import GaveUpError, Publisher
from .requests import Requests
from .slots import Slots
from .spec import Limits, Spec, SpecError, parse
from .state import State
from .store import Store, StoreMissingError, StoreUrlError, open_store
from .unpack import ArchiveError

DONE, AGAIN, UNUSABLE, BUSY = 0, 1, 2, 3
_GIVE_UPS = 3


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser("runner.pyz")
    verbs = parser.add_subparsers(dest="verb", required=True)
    host = verbs.add_parser("host", help="run a spec to its end; may be given again at any time")
    host.add_argument("--store", required=True, help="URL of the store")
    host.add_argument("--spec", required=True, help="key of the spec in it")
    host.add_argument("--root", required=True, type=Path, help="folder for state, logs and the work folder")
    host.add_argument("--once", action="store_true", help="don't start over in this process after a failure")
    options = parser.parse_args(arguments)
    root = options.root.absolute()
    try:
        store = open_store(options.store)
        root.mkdir(parents=True, exist_ok=True)
    except (StoreUrlError, OSError) as error:
        return _say(UNUSABLE, str(error))
    with locked(root / "lock") as held:
        if held is None:
            return _say(BUSY, f"{root} is held by {(root / 'lock').read_text(errors='replace').strip() or 'another'}")
        os.ftruncate(held, 0)
        os.write(held, f"pid {os.getpid()} on {socket.gethostname()}\n".encode())
        return _persist(store, options.spec, root, options.once)


def _persist(store: Store, key: str, root: Path, once: bool) -> int:
    """Start over after a failure of disk or store, with growing pauses; every start adopts what runs."""
    pause = 0.5
    while True:
        try:
            return _Host(store, key, root).run()
        except (SpecError, ArchiveError) as error:
            return _say(UNUSABLE, f"{key}: {error}")
        except (OSError, sqlite3.Error, EngineError) as error:
            _say(AGAIN, f"{type(error).__name__}: {error}")
            if once or pause > 8.0:
                return AGAIN
        time.sleep(pause)
        pause *= 2


def _say(code: int, text: str) -> int:
    sys.stderr.write(f"widelane: {text}\n")
    return code


class _Host:
    """One try of running the spec in this process."""

    def __init__(self, store: Store, key: str, root: Path) -> None:
        self._store = store
        self._key = key
        self._root = root

    def run(self) -> int:
        with contextlib.ExitStack() as stack:
            loop = Loop()
            stack.callback(loop.close)
            stop: list[bool] = []
            loop.on_signals((signal.SIGTERM, signal.SIGINT), lambda: stop.append(True))
            state = State(self._root / "state.db")
            stack.callback(state.close)
            engine = Engine(loop, state, self._root, Path(sys.argv[0]).resolve())
            stack.callback(engine.close)
            spec = parse(_patiently(Limits().store_patience, lambda: self._store.get(self._key)))
            finished = f"leases/{spec.lease}/finished.json"
            if self._store.exists(finished):
                return DONE
            self._claim(state)
            work = work_folder(self._root, spec, self._store)
            host = self._host_record(state, spec)
            publisher = Publisher(self._store, spec, work, host["hostname"])
            publisher.stubbornly(lambda: self._store.put(f"leases/{spec.lease}/host.json", json.dumps(host).encode()))
            slots = make_slots(spec, host)
            if spec.expected_width > 0 and not slots.handles:
                end = {"state": "env_broken", "reason": f"no GPU: {host['trouble']}", "total": len(spec.units)}
                return self._finish(publisher, finished, {**_nothing(), **end}, held=0.0)
            reporter = Reporter(loop, self._store, f"leases/{spec.lease}/progress.json", self._root / "progress.json")
            parts = Parts(loop, state, self._store, engine, slots, publisher, reporter)
            dispatch = Dispatch(spec, Requests(spec, work, slots.width), parts)
            stack.callback(dispatch.close)
            dispatch.begin()

            def turn() -> bool:
                if stop:
                    dispatch.cancel()
                return dispatch.turn()

            loop.run(turn)
            reporter.finish()
            return self._end(dispatch, parts, finished)

    def _end(self, dispatch: Dispatch, parts: Parts, finished: str) -> int:
        end = dispatch.end
        assert end is not None
        record = {"state": end.state, "reason": end.reason, **dispatch.summary()}
        host = parts.state.meta("host")
        if dispatch.gave_up:
            times = (parts.state.meta("gave_up") or 0) + 1
            parts.state.set_meta("gave_up", times)
            parts.state.commit()
            if times < _GIVE_UPS:
                write_record(self._root / "finished.json", record)
                return _say(AGAIN, end.reason)
        return self._finish(parts.publisher, finished, record, parts.slots.width * _since(host))

    def _finish(self, publisher: Publisher, key: str, record: Record, held: float) -> int:
        record = {**record, "gpu_seconds_held": round(held, 3)}
        write_record(self._root / "finished.json", record)
        data = json.dumps(record, indent=1).encode()
        try:
            publisher.stubbornly(lambda: self._store.put_if_absent(key, data))
        except GaveUpError as error:
            return _say(AGAIN, f"{record['state']}: {record['reason']}; {error}")
        return DONE

    def _claim(self, state: State) -> None:
        """A root folder belongs to one spec."""
        mine = [self._store.url, self._key]
        known = state.meta("spec")
        if known is None:
            state.set_meta("spec", mine)
            state.commit()
        elif known != mine:
            raise SpecError(f"{self._root} belongs to {known[1]} of {known[0]}")

    def _host_record(self, state: State, spec: Spec) -> Record:
        """Devices are counted once: attempts that are adopted hold slots by number."""
        known: Optional[Record] = state.meta("host")
        if known is not None:
            return known
        host = describe_host(spec, os.environ, time.time())
        host["clock"] = [_boot(), time.monotonic()]
        state.set_meta("host", host)
        state.commit()
        return host


def make_slots(spec: Spec, host: Record) -> Slots:
    """One slot a GPU, never more than the dispatch asked for; or CPU slots."""
    if spec.expected_width > 0:
        return Slots(tuple(host["handles"][: spec.expected_width]))
    return Slots((), spec.cpu_slots or os.cpu_count() or 1)


def _patiently(patience: float, act: Any) -> bytes:
    deadline = time.monotonic() + patience
    pause = 0.05
    while True:
        try:
            return act()
        except StoreMissingError as error:
            raise SpecError(str(error)) from error
        except OSError:
            if time.monotonic() + pause > deadline:
                raise
            time.sleep(pause)
            pause = min(pause * 2, 5.0)


def _nothing() -> Record:
    return {
        "total": 0, "succeeded": 0, "failed": 0, "cached": 0, "realized_width": 0, "merge": None, "gpu_seconds_busy": 0.0,
    }


def _boot() -> str:
    with contextlib.suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return ""


def _since(host: Record) -> float:
    """Seconds since the host was described: by the monotonic clock unless the machine booted in between."""
    boot, then = host["clock"]
    if boot == _boot():
        return time.monotonic() - then
    return max(0.0, time.time() - host["started"])
