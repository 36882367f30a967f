"""kill -9 anywhere: adopted, judged, or never ran; no unit lives twice, none runs again after success."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.hostbench import PATIENCE, HostBench, digest, shell, unit, until
from widelane.runner.host.attempt import Folder, Standing, locked, settle, write_record
from widelane.runner.host.state import State
from widelane.runner.host.zygote import Zygote

pytestmark = pytest.mark.slow

HOLD = "touch up$WIDELANE_SHARD; while [ ! -e go ]; do sleep 0.02; done"
JOURNAL = (
    "exec 9>>lock$WIDELANE_SHARD; flock -n 9 || echo double >> journal$WIDELANE_SHARD; "
    "echo start >> journal$WIDELANE_SHARD; sleep {seconds}; "
    "echo x > out$WIDELANE_SHARD; echo end >> journal$WIDELANE_SHARD"
)


def journalled(count: int, seconds: float) -> list[dict[str, object]]:
    return [unit(i, shell(JOURNAL.format(seconds=seconds)), outputs=[f"out{i}"]) for i in range(count)]


def journal(bench: HostBench, index: int) -> list[str]:
    path = bench.work(f"journal{index}")
    return path.read_text().split() if path.exists() else []


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for_end(zygote: Zygote) -> None:
    """Of the supervisor that the zygote forks next."""
    answer = zygote.receive()
    assert answer is not None
    pidfd = answer[2]
    assert pidfd is not None
    ready, _, _ = select.select([pidfd], [], [], PATIENCE)
    os.close(pidfd)
    assert ready, "the supervisor never ended"


def test_a_scheduler_that_was_killed_adopts_what_runs_when_started_again(bench: HostBench) -> None:
    bench.spec([unit(i, shell(HOLD)) for i in range(3)])
    first = bench.start()
    until(lambda: all(bench.work(f"up{i}").exists() for i in range(3)))
    first.kill()
    first.wait()
    second = bench.start()
    until(lambda: "pid" in (bench.root / "lock").read_text() and str(second.pid) in (bench.root / "lock").read_text())
    bench.work("go").touch()
    assert second.wait(30) == 0
    assert sorted(path.name for path in (bench.root / "attempts").iterdir()) == ["0-1", "1-1", "2-1"]
    assert len(list((bench.store / "records").iterdir())) == 3


def test_units_that_ended_while_no_scheduler_lived_are_judged_at_the_next_start(bench: HostBench) -> None:
    bench.spec([unit(0, shell(HOLD + "; echo done > out"), outputs=["out"]), unit(1, shell(HOLD + "; exit 5"))])
    first = bench.start()
    until(lambda: bench.work("up0").exists() and bench.work("up1").exists())
    first.kill()
    first.wait()
    bench.work("go").touch()
    until(lambda: all((bench.root / f"attempts/{i}-1/exit.json").exists() for i in range(2)))
    finished = bench.run()
    assert (finished["succeeded"], finished["failed"]) == (1, 1)
    assert bench.record("unit 0")["outputs"]
    assert bench.failures()[digest("unit 1")]["exit_code"] == 5
    assert not (bench.root / "attempts/0-2").exists()


def test_a_killed_zygote_is_made_again_and_its_supervisors_go_on(bench: HostBench) -> None:
    bench.gpus(1)
    bench.spec([unit(0, shell(HOLD)), unit(1, ["true"])], width=1)
    host = bench.start()
    until(bench.work("up0").exists)
    zygotes = bench.pids("runner.pyz zygote")
    parent = [pid for pid in zygotes if f"PPid:\t{host.pid}" in Path(f"/proc/{pid}/status").read_text()]
    assert len(parent) == 1
    kill(parent)
    until(lambda: len(set(bench.pids("runner.pyz zygote")) - set(zygotes)) == 1)
    bench.work("go").touch()
    assert host.wait(30) == 0
    assert bench.record("unit 1")["exit_code"] == 0
    assert not (bench.root / "attempts/0-2").exists()


def test_a_unit_whose_supervisor_was_killed_is_killed_and_run_once_more(bench: HostBench) -> None:
    bench.spec([unit(0, shell("setsid sleep 600 & echo x >> tries; touch up; while [ ! -e go ]; do sleep 0.02; done"))])
    host = bench.start()
    for count in (1, 2):
        until(lambda count=count: bench.work("tries").exists() and bench.work("tries").read_text() == "x\n" * count)
        before = bench.pids("sleep 600")
        kill([json.loads((bench.root / f"attempts/0-{count}/start.json").read_text())["pid"]])
        until(lambda before=before: not set(before) & set(bench.pids("sleep 600")))
    assert host.wait(30) == 0
    finished = json.loads((bench.store / "leases/L/finished.json").read_text())
    assert (finished["state"], finished["failed"]) == ("failed", 1)
    assert bench.failures()[digest("unit 0")]["reason"] == "lost"
    assert bench.work("tries").read_text() == "x\nx\n"


def test_a_unit_that_was_lost_once_may_still_succeed(bench: HostBench) -> None:
    bench.spec([unit(0, shell("echo x >> tries; while [ ! -e go ]; do sleep 0.02; done"))])
    host = bench.start()
    until(bench.work("tries").exists)
    kill([json.loads((bench.root / "attempts/0-1/start.json").read_text())["pid"]])
    until(lambda: bench.work("tries").read_text() == "x\nx\n")
    bench.work("go").touch()
    assert host.wait(30) == 0
    assert bench.record("unit 0")["log"] == "logs/L/0-2.log"
    assert bench.failures() == {}


def test_an_intent_without_a_start_never_ran_and_never_will(bench: HostBench) -> None:
    bench.spec([unit(0, shell("echo x >> tries"))])
    bench.root.mkdir()
    state = State(bench.root / "state.db")
    attempt = state.intend("0", "n", (0,), 1)
    state.commit()
    state.close()
    folder = Folder(bench.root / "attempts" / attempt.name)
    folder.path.mkdir(parents=True)
    request = {"argv": shell("echo late >> tries"), "cwd": str(bench.work("")), "outputs": [], "env": {}, "grace": 1}
    folder.request.write_text(json.dumps({**request, "nonce": "n"}))
    assert bench.run()["succeeded"] == 1
    assert folder.void.exists()
    zygote = Zygote(bench.runner, bench.base / "zygote.log")
    zygote.send(folder.path)
    wait_for_end(zygote)
    zygote.close()
    assert settle(folder) is Standing.VOID
    assert bench.work("tries").read_text() == "x\n"


def test_a_supervisor_that_runs_already_is_not_doubled_by_a_repeated_request(bench: HostBench) -> None:
    folder = Folder(bench.base / "a")
    folder.path.mkdir()
    script = f"echo x >> {bench.base}/tries; while [ ! -e {bench.base}/go ]; do sleep 0.02; done"
    request = {"argv": shell(script), "cwd": str(bench.base), "outputs": [], "env": {}, "grace": 1, "nonce": "n"}
    folder.request.write_text(json.dumps(request))
    zygote = Zygote(bench.runner, bench.base / "zygote.log")
    zygote.send(folder.path)
    first = zygote.receive()
    assert first is not None
    until((bench.base / "tries").exists)
    zygote.send(folder.path)
    wait_for_end(zygote)
    (bench.base / "go").touch()
    until(lambda: settle(folder) is Standing.ENDED)
    zygote.send(folder.path)
    wait_for_end(zygote)
    zygote.close()
    os.close(first[2] or -1)
    assert (bench.base / "tries").read_text() == "x\n"


def test_a_supervisor_that_does_not_get_the_lock_runs_nothing(bench: HostBench) -> None:
    folder = Folder(bench.base / "a")
    folder.path.mkdir()
    argv = ["touch", str(bench.base / "ran")]
    request = {"argv": argv, "cwd": str(bench.base), "outputs": [], "env": {}, "grace": 1, "nonce": "n"}
    folder.request.write_text(json.dumps(request))
    zygote = Zygote(bench.runner, bench.base / "zygote.log")
    with locked(folder.lock):
        zygote.send(folder.path)
        wait_for_end(zygote)
    zygote.close()
    assert not folder.start.exists()
    assert not (bench.base / "ran").exists()


def _alive(folder: Folder) -> Standing:
    with locked(folder.lock):
        return settle(folder)


@pytest.mark.parametrize(
    ("write", "standing"),
    [
        (lambda _: None, Standing.VOID),
        (lambda folder: write_record(folder.start, {}), Standing.LOST),
        (lambda folder: (write_record(folder.start, {}), write_record(folder.exit, {})), Standing.ENDED),
    ],
)
def test_an_attempt_folder_says_one_of_four_things(
    tmp_path: Path, write: Callable[[Folder], object], standing: Standing
) -> None:
    folder = Folder(tmp_path)
    write(folder)
    assert _alive(folder) is Standing.ALIVE
    assert not folder.void.exists()
    assert settle(folder) is standing
    assert folder.void.exists() == (standing is Standing.VOID)


def test_a_record_that_was_written_before_the_crash_stays_as_it_is(bench: HostBench) -> None:
    bench.spec([unit(0, shell(HOLD + "; echo x > out"), outputs=["out"])])
    first = bench.start()
    until(bench.work("up0").exists)
    first.kill()
    first.wait()
    record = bench.store / "records" / f"{digest('unit 0')}.json"
    record.parent.mkdir()
    record.write_text('{"unit": "by another"}')
    bench.work("go").touch()
    assert bench.run()["succeeded"] == 1
    assert record.read_text() == '{"unit": "by another"}'


def test_an_unpacking_that_was_cut_is_done_again(bench: HostBench) -> None:
    half = bench.root / "work.new" / "half"
    half.mkdir(parents=True)
    bench.spec([unit(0, shell("ls"))])
    bench.run()
    assert bench.log("0-1") == ""
    assert not half.parent.exists()


def test_setup_is_adopted_like_a_unit(bench: HostBench) -> None:
    bench.spec(
        [unit(0, ["cat", "ready"])], setup={"argv": shell("echo x >> ready; while [ ! -e go ]; do sleep 0.02; done")}
    )
    first = bench.start()
    until(bench.work("ready").exists)
    first.kill()
    first.wait()
    bench.work("go").touch()
    assert bench.run()["succeeded"] == 1
    assert bench.log("0-1") == "x\n"


def _storm(bench: HostBench, kills: int, seed: int, targets: tuple[str, ...] = ("scheduler", "zygote", "both")) -> int:
    """Kill at random moments until so many fell or all is done, then let it end; returns how many fell."""
    chance = random.Random(seed)
    host = bench.start()
    fell = 0
    while fell < kills and host.poll() != 0:
        time.sleep(chance.uniform(0.0, 0.5))
        target = chance.choice(targets)
        if target in ("zygote", "both"):
            kill([pid for pid in bench.pids("runner.pyz zygote") if _parent(pid) == host.pid])
        if target == "supervisor":
            supervisors = [pid for pid in bench.pids("runner.pyz zygote") if _parent(pid) != host.pid]
            kill(chance.sample(supervisors, min(1, len(supervisors))))
        if target in ("scheduler", "both"):
            host.kill()
            host.wait()
            host = bench.start()
        fell += 1
    while host.wait(60) != 0:
        host = bench.start()
    return fell


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return -1


def _check_storm(bench: HostBench, count: int) -> None:
    finished = json.loads((bench.store / "leases/L/finished.json").read_text())
    assert (finished["state"], finished["succeeded"]) == ("succeeded", count)
    for index in range(count):
        assert journal(bench, index) == ["start", "end"], f"unit {index}: {journal(bench, index)}"
    state = State(bench.root / "state.db")
    assert state.open_attempts() == []
    state.close()
    for attempt in (bench.root / "attempts").iterdir():
        assert settle(Folder(attempt)) in (Standing.ENDED, Standing.VOID)


def test_schedulers_and_zygotes_killed_at_random_points_run_every_unit_exactly_once(bench: HostBench) -> None:
    bench.gpus(4)
    bench.spec(journalled(40, 0.4), width=4, merge={"digest": digest("merge"), "argv": ["true"], "outputs": []})
    assert _storm(bench, kills=12, seed=20) > 5
    _check_storm(bench, 40)


def test_supervisors_killed_at_random_points_never_leave_a_unit_living_twice(bench: HostBench) -> None:
    bench.gpus(4)
    bench.spec(journalled(24, 0.3), width=4)
    _storm(bench, kills=8, seed=7, targets=("supervisor", "scheduler"))
    for index in range(24):
        lines = journal(bench, index)
        recorded = (bench.store / "records" / f"{digest(f'unit {index}')}.json").exists()
        assert lines.count("start") <= 2
        assert "double" not in lines
        assert recorded == (digest(f"unit {index}") not in bench.failures())
        assert not recorded or lines[-1] == "end"


@pytest.mark.weekly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10))
def test_two_hundred_random_kills_run_every_unit_exactly_once(bench: HostBench, seed: int) -> None:
    bench.gpus(4)
    bench.spec(journalled(150, 0.3), width=4)
    _storm(bench, kills=20, seed=seed)
    _check_storm(bench, 150)
