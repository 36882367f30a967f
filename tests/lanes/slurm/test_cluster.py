"""The slurm lane on a real SLURM: what it asks for, what it waits for, how it ends, what a lost answer leaves."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.launches import rung
from tests.fakes.slurm_cluster import Cluster
from tests.lanes.conftest import LONG_WORK, SHORT_WORK, Site
from widelane.config import SlurmSettings
from widelane.errors import ConfigError, LaneUnknownError
from widelane.lanes.protocol import Granted, Launch, Machine, MachineState, Pending, Progress
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.models.room import LaneRoom

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]
ZONE = "slurm.test"


@dataclasses.dataclass
class Bench:
    """One cluster under test, through the lane with these settings."""

    site: Site
    cluster: Cluster
    eventually: Eventually

    def use(self, **settings: Any) -> None:
        """Change the section of the cluster."""
        section = self.site.settings.slurm["test"].model_copy(update=settings)
        self.site.settings = self.site.settings.model_copy(update={"slurm": {"test": section}})
        self.lane = self.site.open()

    def __post_init__(self) -> None:
        self.lane = self.site.open()

    def launch(self, width: int = 2, argv: tuple[str, ...] = LONG_WORK, **changes: Any) -> Launch:
        where = rung("any", width, lane=ZONE, gpu="", zones=())
        return dataclasses.replace(self.site.launch(argv, rung=where), **changes)

    def folder(self, sent: Launch) -> Path:
        return Path(self.site.settings.slurm["test"].workdir) / sent.name

    def polled(self, sent: Launch, wanted: Callable[[Progress], bool]) -> Any:
        """What `poll` says once it is what is wanted."""
        seen: list[Progress] = []

        def told() -> bool:
            seen.append(self.lane.poll(sent, ""))
            return wanted(seen[-1])

        self.eventually(told, within=20.0)
        return seen[-1]

    def granted(self, sent: Launch) -> Machine:
        first = self.lane.create(sent)
        assert not isinstance(first, Failure), first
        answer = self.polled(sent, lambda progress: not isinstance(progress, Pending))
        assert isinstance(answer, Granted), answer
        return answer.machine

    def failed(self, sent: Launch) -> Failure:
        answer = self.polled(sent, lambda progress: isinstance(progress, Failure))
        assert isinstance(answer, Failure)
        return answer

    def waiting(self, sent: Launch) -> Pending:
        """The create once SLURM has looked at it and said why it waits."""
        first = self.lane.create(sent)
        assert isinstance(first, Pending), first
        assert first.queued
        answer = self.polled(sent, lambda progress: isinstance(progress, Failure) or _has_reason(progress))
        assert isinstance(answer, Pending), answer
        return answer

    def stopped(self, sent: Launch) -> Machine:
        seen: list[Machine | None] = []

        def ended() -> bool:
            seen.append(self.lane.find(sent.name, ZONE))
            found = seen[-1]
            return found is not None and found.state is MachineState.STOPPED

        self.eventually(ended, within=30.0)
        last = seen[-1]
        assert last is not None
        return last

    def gone(self, sent: Launch) -> None:
        self.lane.delete(sent.name, ZONE)
        self.eventually(lambda: self.lane.find(sent.name, ZONE) is None, within=30.0)

    def shown(self, job: str) -> dict[str, str]:
        pairs = [word.partition("=") for word in self.cluster.ask("scontrol", "-o", "show", "job", job).split()]
        return {key: value for key, _, value in pairs}


def _has_reason(progress: Progress) -> bool:
    return isinstance(progress, Pending) and progress.hint.startswith("waits for Resources")


@pytest.fixture
def bench(sites: Callable[[str], Site], slurm_cluster: Cluster, eventually: Eventually) -> Bench:
    return Bench(sites(ZONE), slurm_cluster, eventually)


@pytest.fixture
def shadow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`shadow("squeue", script)`: that command is this script for as long as the test runs; $REAL is the real one."""
    folder = tmp_path / "shadows"
    folder.mkdir()
    real = os.environ["PATH"]

    def put(command: str, script: str) -> None:
        path = folder / command
        path.write_text(f"#!/bin/sh\nREAL={shutil.which(command, path=real)}\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{real}")

    return put


def test_the_gpus_of_the_job_are_counted_in_it_and_each_unit_gets_its_own(bench: Bench) -> None:
    words = "import os, pathlib; pathlib.Path('out.txt').write_text(os.environ['CUDA_VISIBLE_DEVICES'])"
    sent = bench.launch(3, ("python3", "-c", words))
    bench.granted(sent)
    machine = bench.stopped(sent)
    host = json.loads(bench.site.yard.store.get(f"leases/{sent.attempt_id}/host.json"))
    assert host["count"] == 3
    assert len(set(host["handles"])) == 3
    record = json.loads(bench.site.yard.store.get(f"records/{sent.attempt_id}.json"))
    assert record["gpus"] == [host["handles"][0]]
    assert json.loads(machine.progress)["state"] == "succeeded"


def test_a_job_asks_for_a_share_of_a_node_and_carries_our_marks(bench: Bench) -> None:
    sent = bench.launch(4, fence_seconds=3601)
    shown = bench.shown(bench.granted(sent).id)
    assert shown["TresPerNode"] == "gres:gpu:4"
    assert (shown["NumNodes"], shown["CPUs/Task"], shown["MinMemoryNode"]) == ("1", "8", "9000M")
    assert (shown["TimeLimit"], shown["Requeue"]) == ("01:01:00", "0")
    assert shown["JobName"] == sent.name
    assert shown["Comment"].startswith("widelane=1,")
    assert f",widelane-attempt={sent.attempt_id}," in shown["Comment"]


def test_what_the_section_says_is_asked_for(bench: Bench) -> None:
    bench.use(partition="main", gpu="h100", time_limit="20", options=("--cpus-per-task=3", "--mem=300M"))
    shown = bench.shown(bench.granted(bench.launch(2)).id)
    assert shown["TresPerNode"] == "gres:gpu:h100:2"
    assert (shown["NodeList"], shown["TimeLimit"]) == ("gpu3", "00:20:00")
    assert (shown["CPUs/Task"], shown["MinMemoryNode"]) == ("3", "300M")


def test_a_lane_says_how_large_its_machines_are(bench: Bench) -> None:
    assert bench.lane.room() == LaneRoom(gpus=8, seconds=86_400)
    bench.use(partition="four", time_limit="0-01")
    assert bench.lane.room() == LaneRoom(gpus=4, seconds=3600)
    bench.use(partition="", gpu="h100", time_limit="")
    assert bench.lane.room() == LaneRoom(gpus=2, seconds=86_400)


def test_a_width_that_no_node_holds_is_refused_before_it_is_submitted(bench: Bench) -> None:
    sent = bench.launch(16)
    answer = bench.lane.create(sent)
    assert isinstance(answer, Failure)
    assert (answer.outcome, answer.scope, answer.code) == (Outcome.CONFIG, Scope.RUNG, "TOO_WIDE")
    assert bench.cluster.states(sent.name) == []
    assert bench.lane.find(sent.name, ZONE) is None


def test_work_that_takes_longer_than_a_job_may_run_is_refused_before_it_is_submitted(bench: Bench) -> None:
    bench.use(partition="short")
    sent = bench.launch(least_seconds=1801)
    answer = bench.lane.create(sent)
    assert isinstance(answer, Failure)
    assert (answer.outcome, answer.scope, answer.code) == (Outcome.CONFIG, Scope.RUNG, "TIME_LIMIT")
    assert bench.cluster.states(sent.name) == []
    assert bench.shown(bench.granted(bench.launch(least_seconds=1800)).id)["TimeLimit"] == "00:30:00"


def test_what_slurm_itself_refuses_is_told_and_leaves_nothing(bench: Bench) -> None:
    bench.use(options=("--constraint=nowhere",))
    sent = bench.launch()
    answer = bench.lane.create(sent)
    assert isinstance(answer, Failure)
    assert (answer.outcome, answer.code) == (Outcome.CONFIG, "INVALID_FEATURE")
    assert "Invalid feature" in answer.message
    bench.gone(sent)
    assert set(bench.cluster.states(sent.name)) <= {"FAILED"}


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"partition": "nope"}, "no partition 'nope'"),
        ({"time_limit": "soon"}, "not a time limit"),
        ({"options": ("qos=high",)}, "no option of sbatch"),
        ({"workdir": "/proc/widelane"}, "can't be made"),
    ],
)
def test_a_section_that_can_not_work_is_told_before_any_walk(bench: Bench, settings: dict[str, Any], word: str) -> None:
    bench.use(**settings)
    with pytest.raises(ConfigError) as told:
        bench.lane.check(bench.site.yard.store.url)
    assert word in told.value.message
    assert "[lanes.slurm.test]" in told.value.hint


def test_a_job_that_waits_says_for_what_and_until_about_when(bench: Bench) -> None:
    bench.use(partition="four")
    holder, sent = bench.launch(4), bench.launch(2)
    bench.granted(holder)
    waiting = bench.waiting(sent)
    assert waiting.queued
    assert waiting.hint.startswith("waits for Resources")
    found = bench.lane.find(sent.name, ZONE)
    assert found is not None
    assert (found.state, found.id) == (MachineState.QUEUED, waiting.operation)
    expected = bench.polled(sent, lambda progress: "expected to start about 20" in progress.hint)  # type: ignore[union-attr]  # a waiting job's
    assert expected.hint.endswith("0")


def test_a_waiting_job_that_is_deleted_never_runs(bench: Bench) -> None:
    bench.use(partition="four")
    holder, sent = bench.launch(4), bench.launch(2)
    bench.granted(holder)
    bench.waiting(sent)
    bench.gone(sent)
    assert bench.cluster.states(sent.name) == ["CANCELLED"]
    bench.gone(holder)
    assert not bench.site.yard.store.exists(f"leases/{sent.attempt_id}/host.json")


def test_a_waiting_job_that_somebody_else_cancels_has_vanished_from_the_queue(bench: Bench) -> None:
    bench.use(partition="four")
    holder, sent = bench.launch(4), bench.launch(2)
    bench.granted(holder)
    bench.cluster.ask("scancel", bench.waiting(sent).operation)
    assert bench.failed(sent).outcome is Outcome.QUEUE_VANISHED


def test_a_reason_that_no_waiting_mends_is_told_at_the_second_look(bench: Bench) -> None:
    bench.use(partition="short", options=("--time=40",))
    sent = bench.launch()
    created = bench.lane.create(sent)
    first = bench.lane.poll(sent, "")
    assert isinstance(created, Pending)
    assert isinstance(first, Pending)
    second = bench.lane.poll(sent, "")
    assert isinstance(second, Failure)
    assert (second.outcome, second.scope) == (Outcome.CONFIG, Scope.RUNG)
    assert second.code in ("PartitionTimeLimit", "PartitionConfig")
    bench.gone(sent)


def test_a_partition_that_is_down_has_no_capacity(bench: Bench) -> None:
    bench.use(partition="down")
    sent = bench.launch()
    bench.lane.create(sent)
    failure = bench.failed(sent)
    assert (failure.outcome, failure.code) == (Outcome.CAPACITY, "PartitionDown")
    bench.gone(sent)


def test_a_job_that_has_to_make_room_was_preempted(bench: Bench) -> None:
    bench.use(partition="scavenge")
    sent = bench.launch(2)
    machine = bench.granted(sent)
    bench.use(partition="over")
    other = bench.launch(2)
    bench.lane.create(other)
    ended = bench.stopped(sent)
    assert ended.id == machine.id
    assert ended.end is not None
    assert ended.end.outcome is Outcome.PREEMPTED
    assert bench.lane.preempted(sent.name, ZONE)
    assert not bench.lane.preempted(other.name, ZONE)


def test_a_job_whose_node_is_lost_ends_as_a_passing_failure(bench: Bench) -> None:
    sent = bench.launch(2)
    node = bench.shown(bench.granted(sent).id)["NodeList"]
    bench.eventually((bench.folder(sent) / "claim").exists)
    try:
        bench.cluster.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=test")
        ended = bench.stopped(sent)
    finally:
        bench.cluster.ask("scontrol", "update", f"NodeName={node}", "State=RESUME")
        bench.cluster.wait_idle()
    assert ended.end is not None
    assert (ended.end.outcome, ended.end.code) == (Outcome.TRANSIENT, "NODE_FAIL")


def test_a_job_that_takes_more_memory_than_it_has_is_told_so(bench: Bench) -> None:
    """Without cgroups SLURM calls it FAILED 0:9 or CANCELLED, and only a line of the job's log says why."""
    bench.use(options=("--mem=80M",))
    eat = (sys.executable, "-c", "import time; kept = b'x' * 400_000_000; time.sleep(600)")
    sent = bench.launch(1, eat)
    bench.granted(sent)
    end = bench.stopped(sent).end
    assert end is not None
    assert (end.outcome, end.code) == (Outcome.WORKLOAD, "OUT_OF_MEMORY")
    assert "memory" in end.hint


@pytest.mark.weekly  # SLURM counts limits in whole minutes
def test_a_job_that_reaches_its_limit_is_told_so_and_may_be_resumed_with_more_time(
    bench: Bench, eventually: Eventually
) -> None:
    sent = bench.launch(1, fence_seconds=60)
    machine = bench.granted(sent)
    eventually(lambda: bench.shown(machine.id)["JobState"] == "TIMEOUT", within=150.0)
    end = bench.stopped(sent).end
    assert end is not None
    assert (end.outcome, end.code) == (Outcome.WORKLOAD, "TIMEOUT")
    assert "more time" in end.hint


def test_a_running_job_that_somebody_else_cancels_is_told_so(bench: Bench) -> None:
    sent = bench.launch(2)
    bench.cluster.ask("scancel", bench.granted(sent).id)
    end = bench.stopped(sent).end
    assert end is not None
    assert (end.outcome, end.code) == (Outcome.WORKLOAD, "CANCELLED")
    assert "somebody else" in end.hint


def test_a_job_that_can_not_run_the_runner_says_so_in_its_result(bench: Bench) -> None:
    sent = dataclasses.replace(bench.launch(2), spec_key="specs/nowhere.json")
    bench.granted(sent)
    assert bench.stopped(sent).end is not None
    finished = json.loads(bench.site.yard.store.get(f"leases/{sent.attempt_id}/finished.json"))
    assert (finished["state"], finished["total"]) == ("env_broken", 0)
    assert "ended with 2" in finished["reason"]


def test_a_second_job_of_the_same_attempt_leaves_the_work_to_the_first(bench: Bench) -> None:
    sent = bench.launch(1)
    machine = bench.granted(sent)
    folder = bench.folder(sent)
    bench.eventually((folder / "claim").exists)
    options = [f"--job-name={sent.name}", f"--comment={bench.shown(machine.id)['Comment']}", "--gres=gpu:1"]
    script = folder / "again.sh"
    script.write_text("#!/bin/sh\nexec python3 keeper.py\n")
    second = bench.cluster.ask("sbatch", "--parsable", f"--chdir={folder}", *options, str(script)).strip()
    bench.eventually(lambda: bench.shown(second)["JobState"] == "COMPLETED", within=20.0)
    found = bench.lane.find(sent.name, ZONE)
    assert found is not None
    assert (found.id, found.state) == (machine.id, MachineState.RUNNING)


def test_an_answer_that_was_lost_is_found_again_by_name(bench: Bench, shadow: Callable[[str, str], None]) -> None:
    words = "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    shadow("sbatch", f'$REAL "$@" >/dev/null; echo "{words}" >&2; exit 1')
    sent = bench.launch()
    answer = bench.lane.create(sent)
    assert isinstance(answer, Failure)
    assert (answer.outcome, answer.outcome_known) == (Outcome.TRANSIENT, False)
    found = bench.lane.find(sent.name, ZONE)
    assert found is not None
    assert found.attempt_id == sent.attempt_id
    again = bench.lane.create(sent)
    assert not isinstance(again, Failure)
    assert len(bench.cluster.states(sent.name)) == 1


def test_a_job_whose_id_was_never_written_down_is_adopted(bench: Bench) -> None:
    sent = bench.launch()
    machine = bench.granted(sent)
    (bench.folder(sent) / "job").unlink()
    again = bench.site.open().create(sent)
    assert isinstance(again, Granted)
    assert again.machine.id == machine.id
    assert len(bench.cluster.states(sent.name)) == 1


def test_a_job_that_the_controller_has_forgotten_still_counts_by_its_folder(
    bench: Bench, shadow: Callable[[str, str], None]
) -> None:
    sent = bench.launch(1, SHORT_WORK)
    bench.granted(sent)
    bench.stopped(sent)
    shadow("squeue", "exit 0")
    shadow("scontrol", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    found = bench.site.open().find(sent.name, ZONE)
    assert found is not None
    assert (found.state, found.attempt_id) == (MachineState.STOPPED, sent.attempt_id)
    assert found.end is not None
    assert found.end.code == "FORGOTTEN"
    assert isinstance(bench.site.open().create(sent), Granted)


@pytest.mark.parametrize("command", ["squeue", "scancel"])
def test_a_controller_that_does_not_answer_leaves_everything_unknown(
    bench: Bench, shadow: Callable[[str, str], None], command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = bench.launch()
    bench.granted(sent)
    shadow(command, "echo 'error: Unable to contact slurm controller (connect failure)' >&2; exit 1")
    if command == "squeue":
        with pytest.raises(LaneUnknownError, match="Unable to contact"):
            bench.lane.find(sent.name, ZONE)
        with pytest.raises(LaneUnknownError):
            bench.lane.machines()
        with pytest.raises(LaneUnknownError):
            bench.lane.create(sent)
    with pytest.raises(LaneUnknownError, match=command):
        bench.lane.delete(sent.name, ZONE)
    monkeypatch.setenv("PATH", os.environ["PATH"].partition(":")[2])
    bench.gone(sent)
    assert set(bench.cluster.states(sent.name)) <= {"CANCELLED", "COMPLETED"}


def test_a_cancel_that_is_not_confirmed_stops_everything_and_names_the_job(
    bench: Bench, shadow: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = bench.launch()
    machine = bench.granted(sent)
    shadow("scancel", "exit 0")
    cancelled = bench.folder(sent) / "cancelled"
    cancelled.write_text(str(time.time() - 121))
    with pytest.raises(LaneUnknownError) as told:
        bench.lane.delete(sent.name, ZONE)
    assert told.value.code == "cancel_unconfirmed"
    assert machine.id in told.value.message
    assert sent.name in told.value.message
    monkeypatch.setenv("PATH", os.environ["PATH"].partition(":")[2])
    cancelled.unlink()
    bench.gone(sent)


def test_a_host_without_slurm_is_a_mistake_of_the_section(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("python3", "sh", "bash"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/false")
    with pytest.raises(ConfigError, match="no sbatch, squeue"):
        bench.lane.check("")


def test_settings_are_those_of_one_cluster() -> None:
    assert SlurmSettings(host="h", gpus=8, time_limit="30").room == LaneRoom(gpus=8, seconds=1800)
    assert SlurmSettings(host="h", time_limit="soon").room == LaneRoom()
