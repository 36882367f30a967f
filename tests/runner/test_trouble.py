"""Stores and disks that fail: tried again for a while, then said clearly, and nothing is lost or done twice."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hostbench import HostBench, digest, shell, unit, until
from widelane.runner.host.attempt import Folder, Record, Standing
from widelane.runner.host.dispatch import Dispatch, Parts
from widelane.runner.host.engine import Ending
from widelane.runner.host.loop import Loop, Stop
from widelane.runner.host.publish import Publisher
from widelane.runner.host.requests import Requests
from widelane.runner.host.slots import Slots
from widelane.runner.host.spec import parse
from widelane.runner.host.state import Attempt, State
from widelane.runner.host.store import FileStore

WRITES = "echo x >> tries; echo 1 > out"


def block(bench: HostBench, name: str) -> Path:
    """Let every write below a folder of the store fail."""
    path = bench.store / name
    path.write_text("in the way")
    return path


@pytest.mark.parametrize("name", ["blobs", "logs", "records"])
def test_a_store_that_fails_is_given_up_after_a_while_and_the_next_start_goes_on(bench: HostBench, name: str) -> None:
    bench.spec([unit(0, shell(WRITES), outputs=["out"]), unit(1, ["true"])], limits={"store_patience": 0.2})
    way = block(bench, name)
    assert bench.run(code=1) == {}
    assert "the store failed" in bench.said()
    assert json.loads((bench.root / "finished.json").read_text())["reason"].startswith("store_failed")
    way.unlink()
    assert bench.run()["succeeded"] == 2
    assert bench.work("tries").read_text() == "x\n"
    assert bench.record("unit 0")["outputs"]


def test_a_store_that_fails_for_good_is_how_the_dispatch_ends(bench: HostBench) -> None:
    bench.spec([unit(0, shell(WRITES), outputs=["out"])], limits={"store_patience": 0.1})
    block(bench, "blobs")
    for _ in range(2):
        assert bench.run(code=1) == {}
    finished = bench.run()
    assert finished["state"] == "failed"
    assert finished["reason"].startswith("store_failed: ")
    assert bench.work("out").exists()
    assert bench.work("tries").read_text() == "x\n"


def test_a_store_that_works_again_in_time_is_not_noticed(bench: HostBench) -> None:
    bench.spec([unit(0, shell(WRITES), outputs=["out"])], limits={"store_patience": 20})
    way = block(bench, "blobs")
    host = bench.start()
    until((bench.root / "attempts/0-1/exit.json").exists)
    way.unlink()
    assert host.wait(30) == 0
    assert bench.record("unit 0")["outputs"]


def test_units_go_on_while_the_store_fails(bench: HostBench) -> None:
    bench.gpus(1)
    units = [unit(i, shell(f"echo {i} > out{i}"), outputs=[f"out{i}"]) for i in range(4)]
    bench.spec(units, width=1, limits={"store_patience": 20})
    way = block(bench, "blobs")
    host = bench.start()
    until(lambda: all((bench.root / f"attempts/{i}-1/exit.json").exists() for i in range(4)))
    way.unlink()
    assert host.wait(30) == 0
    assert len(list((bench.store / "records").iterdir())) == 4


def test_a_store_that_takes_nothing_ends_the_try_and_the_next_start_goes_on(bench: HostBench) -> None:
    bench.spec([unit(0, ["true"])], limits={"store_patience": 0.2})
    way = block(bench, "leases")
    assert bench.start().wait(30) == 1
    assert "the store failed" in bench.said()
    way.unlink()
    assert bench.run()["state"] == "succeeded"


def test_a_host_that_cannot_write_its_root_says_so(bench: HostBench) -> None:
    bench.spec([unit(0, ["true"])])
    bench.root.write_text("a file")
    bench.run(code=2)
    assert str(bench.root) in bench.said()


def test_an_exit_record_that_cannot_be_written_is_tried_until_it_can(bench: HostBench) -> None:
    script = "mkdir ../attempts/0-1/exit.json.new; echo x >> tries; touch ended"
    bench.spec([unit(0, shell(script))])
    host = bench.start()
    until(bench.work("ended").exists)
    until(lambda: bench.pids("sh -c") == [])
    assert host.poll() is None
    (bench.root / "attempts/0-1/exit.json.new").rmdir()
    assert host.wait(30) == 0
    assert bench.work("tries").read_text() == "x\n"
    assert bench.record("unit 0")["exit_code"] == 0


def test_a_state_that_is_no_database_is_said_and_nothing_runs(bench: HostBench) -> None:
    bench.spec([unit(0, ["touch", "ran"])])
    bench.root.mkdir()
    (bench.root / "state.db").write_text("not a database" * 100)
    assert bench.run(code=1) == {}
    assert "DatabaseError" in bench.said()


@dataclass
class VoidEngine:
    """Starts nothing: every attempt comes back as one that never ran."""

    loop: Loop
    on_end: Any = None
    started: int = 0
    pending: list[Attempt] = field(default_factory=list)

    def start(self, job: str, slots: tuple[int, ...], gpus: int, request: Record) -> None:
        self.started += 1
        self.pending.append(Attempt(self.started, job, self.started, "n", slots))

    def flush(self) -> None:
        pending, self.pending = self.pending, []
        for attempt in pending:
            self.loop.post(lambda attempt=attempt: self.on_end(Ending(attempt, Standing.VOID)))

    def resume(self) -> None: ...

    def folder(self, attempt: Attempt) -> Folder:
        return Folder(Path("nowhere"))


class NoReporter:
    def tell(self, progress: Record) -> None: ...


@pytest.fixture
def loop() -> Iterator[Loop]:
    handlers = {signum: signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGINT)}
    loop = Loop(Stop())
    yield loop
    loop.close()
    for signum, handler in handlers.items():
        signal.signal(signum, handler)


def test_a_host_where_no_supervisor_ever_starts_gives_up(tmp_path: Path, loop: Loop) -> None:
    body = {"spec": 1, "run_id": "R", "dispatch_id": "D", "lease": "L", "requested_width": 1, "expected_width": 0}
    spec = parse(json.dumps({**body, "units": [unit(0, ["true"]), unit(1, ["true"])]}).encode())
    store = FileStore(tmp_path / "store")
    engine: Any = VoidEngine(loop)
    state = State(tmp_path / "state.db")
    reporter: Any = NoReporter()
    parts = Parts(loop, state, store, engine, Slots((), 2), Publisher(store, spec, tmp_path), reporter)
    dispatch = Dispatch(spec, Requests(spec, tmp_path, 0), parts, void_pause=0.0001)
    dispatch.begin()
    loop.run(dispatch.turn)
    dispatch.close()
    state.close()
    assert engine.started == 16
    assert dispatch.end is not None
    assert "supervisor never started" in dispatch.end.reason
    assert digest("unit 0") not in store.list("records/")
