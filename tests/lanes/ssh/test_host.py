"""What the ssh lane does with GPUs, with lines that break, and with hosts that die."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import guards
from tests.fakes import sshbox, sshd
from tests.fakes.launches import rung
from tests.fakes.sshbox import SshBox
from tests.lanes.conftest import LONG_WORK, Yard
from widelane.config import Settings
from widelane.errors import ConfigError, LaneAuthError, LaneUnknownError, StoreError
from widelane.lanes.protocol import Granted, Launch, MachineState, Pending
from widelane.lanes.registry import open_lane
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.runner.host import processes
from widelane.transport import UnreachedError

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]
TELL_GPUS = "import os; open('out.txt', 'w').write(os.environ['CUDA_VISIBLE_DEVICES'])"
WAITING = (
    "import os, sys, time\nopen(sys.argv[1], 'a').write('x')\nwhile not os.path.exists(sys.argv[2]): time.sleep(.02)"
)


class Ground:
    """One box of its own, and a user of it."""

    def __init__(self, box: SshBox, yard: Yard, home: Path) -> None:
        self.box = box
        self.yard = yard
        self.settings = box.settings(home)
        self.lane: Any = self.open()

    def open(self, settings: Settings | None = None) -> Any:
        """A new lane object, as another process would have it."""
        return open_lane("ssh.box", settings or self.settings)

    def launch(self, argv: tuple[str, ...] = LONG_WORK, width: int = 2, **changes: Any) -> Launch:
        where = rung("any", width, lane="ssh.box", gpu="", zones=())
        return self.yard.launch(where, "ssh.box", argv, **changes)

    def grant(self, *arguments: Any, **changes: Any) -> Launch:
        sent = self.launch(*arguments, **changes)
        answer = self.lane.create(sent)
        assert isinstance(answer, Granted), answer
        return sent

    def state(self, sent: Launch) -> MachineState | None:
        found = self.lane.find(sent.name, sent.zone)
        return None if found is None else found.state

    def finished(self, sent: Launch) -> str:
        """The last word of a machine, once the lane was asked about it."""
        key = f"leases/{sent.attempt_id}/finished.json"
        self.lane.find(sent.name, sent.zone)
        return json.loads(self.yard.store.get(key))["state"] if self.yard.store.exists(key) else ""

    def gpus(self, sent: Launch) -> set[str]:
        """The GPUs that its host counted."""
        key = f"leases/{sent.attempt_id}/host.json"
        return {gpu["uuid"] for gpu in json.loads(self.yard.store.get(key))["gpus"]} if self.counted(sent) else set()

    def counted(self, sent: Launch) -> bool:
        self.lane.find(sent.name, sent.zone)
        return self.yard.store.exists(f"leases/{sent.attempt_id}/host.json")

    def members(self, sent: Launch) -> list[int]:
        return self.box.folder(sent.name).members()


@pytest.fixture
def ground(tmp_path: Path, yard: Yard) -> Iterator[Ground]:
    missing = sshd.missing()
    if missing:
        pytest.skip(missing)
    with sshbox.running(tmp_path / "box") as box:
        made = Ground(box, yard, tmp_path / "home")
        yield made
        for sent in yard.sent:
            box.folder(sent.name).kill()


def test_two_machines_never_have_the_same_gpu(ground: Ground, eventually: Eventually) -> None:
    first, second = ground.grant(), ground.grant()
    eventually(lambda: ground.counted(first) and ground.counted(second), within=20.0)
    assert len(ground.gpus(first)) == len(ground.gpus(second)) == 2
    assert not ground.gpus(first) & ground.gpus(second)
    refused = ground.lane.create(ground.launch())
    assert isinstance(refused, Failure)
    assert (refused.outcome, refused.scope, refused.code) == (Outcome.CAPACITY, Scope.LANE, "gpus_busy")
    assert first.name in refused.message
    assert second.name in refused.message
    assert len(ground.lane.machines()) == 2
    ground.lane.delete(first.name, first.zone)
    ground.grant()


def test_a_width_that_is_not_free_leaves_narrower_ones_to_try(ground: Ground) -> None:
    ground.grant(width=3)
    refused = ground.lane.create(ground.launch(width=2))
    assert isinstance(refused, Failure)
    assert (refused.outcome, refused.scope) == (Outcome.CAPACITY, Scope.RUNG)
    ground.grant(width=1)


def test_a_unit_sees_only_the_gpus_of_its_machine(ground: Ground, eventually: Eventually) -> None:
    ground.grant(width=3)
    sent = ground.grant((sys.executable, "-c", TELL_GPUS), width=1)
    eventually(lambda: ground.finished(sent) == "succeeded", within=20.0)
    record = json.loads(ground.yard.store.get(f"records/{sent.attempt_id}.json"))
    assert record["gpus"] == ["GPU-00000003"]
    assert ground.yard.store.get(f"blobs/{record['outputs'][0]['sha256']}") == b"GPU-00000003"


def test_a_host_with_fewer_gpus_than_configured_is_a_mistake_of_that_rung(ground: Ground) -> None:
    refused = ground.lane.create(ground.launch(width=8))
    assert isinstance(refused, Failure)
    assert (refused.outcome, refused.scope, refused.code) == (Outcome.CONFIG, Scope.RUNG, "too_few_gpus")
    ground.box.nvidia_smi("echo 'driver mismatch' >&2; exit 9")
    broken = ground.lane.create(ground.launch(width=1))
    assert isinstance(broken, Failure)
    assert "driver mismatch" in broken.message
    assert ground.lane.machines() == ()


def test_creates_at_the_same_time_share_the_gpus_out(ground: Ground) -> None:
    sent = [ground.launch(width=3) for _ in range(3)]
    answers: dict[str, Any] = {}
    threads = [
        threading.Thread(target=lambda one=one: answers.update({one.name: ground.open().create(one)})) for one in sent
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    granted = [answer for answer in answers.values() if isinstance(answer, Granted)]
    refused = [answer for answer in answers.values() if isinstance(answer, Failure)]
    assert (len(granted), len(refused)) == (1, 2), answers
    assert {answer.outcome for answer in refused} == {Outcome.CAPACITY}


def test_gpus_of_work_that_outlived_its_keeper_stay_taken(
    ground: Ground, tmp_path: Path, eventually: Eventually
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    sent = ground.grant((sys.executable, "-c", WAITING, str(began), str(go)), width=4)
    eventually(began.exists, within=20.0)
    for pid in ground.members(sent):
        if any(word in guards.describe(pid) for word in ("keep.py", " host ")):
            os.kill(pid, signal.SIGKILL)
    eventually(lambda: ground.state(sent) is MachineState.STOPPED)
    refused = ground.lane.create(ground.launch(width=1))
    assert isinstance(refused, Failure)
    assert refused.code == "gpus_busy"
    ground.lane.delete(sent.name, sent.zone)
    assert ground.members(sent) == []
    ground.grant(width=4)


def test_work_goes_on_without_any_connection_and_its_results_come_home_later(
    ground: Ground, tmp_path: Path, eventually: Eventually
) -> None:
    began, go = tmp_path / "began", tmp_path / "go"
    code = WAITING + "\nopen('out.txt', 'w').write('done')"
    sent = ground.grant((sys.executable, "-c", code, str(began), str(go)))
    eventually(began.exists, within=20.0)
    ground.box.disconnect()
    ground.box.server.cut()
    ground.box.server.stop()
    with pytest.raises(UnreachedError):
        ground.lane.find(sent.name, sent.zone)
    go.touch()
    eventually(lambda: not ground.members(sent), within=20.0)
    ground.box.server.start()
    assert ground.open().find(sent.name, sent.zone).state is MachineState.STOPPED
    assert ground.finished(sent) == "succeeded"
    assert ground.yard.store.exists(f"records/{sent.attempt_id}.json")
    assert began.read_text() == "x"


def test_a_line_lost_while_a_machine_is_made_leaves_one_that_is_adopted(ground: Ground, eventually: Eventually) -> None:
    asked = ground.box.server.home / "asked"
    listing = (ground.box.bin / "nvidia-smi").read_text()
    ground.box.nvidia_smi(f"touch {asked}; sleep 1\n{listing}")
    sent = ground.launch()
    caught: list[Exception] = []

    def create() -> None:
        try:
            ground.lane.create(sent)
        except LaneUnknownError as error:
            caught.append(error)

    thread = threading.Thread(target=create)
    thread.start()
    eventually(asked.exists)
    ground.box.server.cut()
    thread.join(20)
    assert [type(error) for error in caught] == [LaneUnknownError]

    def decided() -> bool:
        answer = ground.open().create(sent)
        assert isinstance(answer, Granted | Pending), answer
        return isinstance(answer, Granted)

    eventually(decided, within=20.0)
    assert [found.name for found in ground.lane.machines()] == [sent.name]


def test_a_host_that_is_down_passes_the_check_and_nothing_is_sent_to_it(ground: Ground) -> None:
    ground.box.server.stop()
    ground.lane.check("")
    with pytest.raises(UnreachedError):
        ground.lane.create(ground.launch())


def test_a_login_that_is_lost_says_what_to_type(ground: Ground) -> None:
    sent = ground.grant()
    ground.box.disconnect()
    ground.box.server.write_config("stranger")
    lane = ground.open(ground.box.settings(ground.settings.home / "other"))
    for ask in (lambda: lane.check(""), lambda: lane.create(ground.launch()), lambda: lane.find(sent.name, "")):
        with pytest.raises(LaneAuthError) as told:
            ask()
        assert told.value.code == "login_needed"
        assert "ssh -F" in told.value.hint


def test_a_folder_that_cannot_be_made_fails_the_check(ground: Ground) -> None:
    ground.box.workdir.write_text("a file is in the way")
    with pytest.raises(ConfigError, match="work"):
        ground.lane.check("")
    refused = ground.lane.create(ground.launch())
    assert isinstance(refused, Failure)
    assert (refused.outcome, refused.scope) == (Outcome.CONFIG, Scope.LANE)


def test_a_host_without_python_fails_the_check_and_the_create(ground: Ground) -> None:
    box = ground.settings.ssh["box"].model_copy(update={"python": "no-such-python"})
    lane = ground.open(ground.settings.model_copy(update={"ssh": {"box": box}}))
    with pytest.raises(ConfigError) as told:
        lane.check("")
    assert "3.9" in told.value.hint
    refused = lane.create(ground.launch())
    assert isinstance(refused, Failure)
    assert (refused.outcome, refused.scope) == (Outcome.CONFIG, Scope.LANE)


def test_a_machine_ends_at_its_fence_without_anybody(ground: Ground, eventually: Eventually) -> None:
    sent = ground.launch()
    assert isinstance(ground.lane.create(dataclasses.replace(sent, fence_seconds=1)), Granted)
    eventually(lambda: ground.state(sent) is MachineState.STOPPED, within=20.0)
    found = ground.lane.find(sent.name, sent.zone)
    assert found.end is not None
    assert (found.end.outcome, found.end.code) == (Outcome.WORKLOAD, "fence_expired")
    assert ground.members(sent) == []


def test_a_host_that_boots_anew_has_machines_that_stopped(
    ground: Ground, tmp_path: Path, eventually: Eventually
) -> None:
    began = tmp_path / "began"
    sent = ground.grant((sys.executable, "-c", WAITING, str(began), str(tmp_path / "go")))
    eventually(began.exists, within=20.0)
    for pid in ground.members(sent):
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: ground.state(sent) is MachineState.STOPPED)
    assert ground.lane.find(sent.name, sent.zone).end is None
    assert ground.finished(sent) == ""
    again = ground.lane.create(sent)
    assert isinstance(again, Granted)
    assert again.machine.state is MachineState.STOPPED
    assert began.read_text() == "x"


def test_a_machine_without_its_keeper_still_runs(ground: Ground, eventually: Eventually) -> None:
    sent = ground.grant()
    eventually(lambda: ground.counted(sent), within=20.0)
    keeper = ground.box.folder(sent.name).keeper()
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: keeper not in processes.table())
    assert ground.state(sent) is MachineState.RUNNING
    ground.lane.delete(sent.name, sent.zone)
    assert ground.members(sent) == []


def test_a_deleted_machine_ends_in_order_and_its_results_are_here_before_it_is_gone(
    ground: Ground, eventually: Eventually
) -> None:
    sent = ground.grant()
    eventually(lambda: ground.counted(sent), within=20.0)
    ground.lane.delete(sent.name, sent.zone)
    key = f"leases/{sent.attempt_id}/finished.json"
    assert json.loads(ground.yard.store.get(key))["state"] == "cancelled"
    assert not ground.box.folder(sent.name).path.exists()
    assert list((ground.settings.home / "lanes").rglob("*.json")) == []


def test_results_that_cannot_come_home_keep_their_machine(ground: Ground, eventually: Eventually) -> None:
    sent = ground.grant((sys.executable, "-c", TELL_GPUS))
    eventually(lambda: not ground.members(sent), within=20.0)
    folder = ground.yard.store.folder
    assert folder is not None
    (folder / "records").write_text("a file is in the way")
    with pytest.raises(StoreError):
        ground.lane.delete(sent.name, sent.zone)
    assert ground.box.folder(sent.name).path.exists()
    (folder / "records").unlink()
    ground.lane.delete(sent.name, sent.zone)
    assert ground.yard.store.exists(f"records/{sent.attempt_id}.json")
    assert not ground.box.folder(sent.name).path.exists()


def test_a_machine_of_another_home_is_seen_and_its_results_are_left_alone(
    ground: Ground, tmp_path: Path, eventually: Eventually
) -> None:
    sent = ground.grant((sys.executable, "-c", TELL_GPUS))
    eventually(lambda: not ground.members(sent), within=20.0)
    stranger = ground.open(ground.box.settings(tmp_path / "another"))
    found = stranger.find(sent.name, sent.zone)
    assert (found.attempt_id, found.labels["widelane"]) == (sent.attempt_id, "1")
    assert [machine.name for machine in stranger.machines()] == [sent.name]
    assert not ground.yard.store.exists(f"records/{sent.attempt_id}.json")


def test_a_claim_whose_start_never_came_is_started_by_the_next_create(ground: Ground) -> None:
    sent = ground.grant()
    ground.lane.delete(sent.name, sent.zone)
    folder = ground.box.folder(sent.name)
    shutil.rmtree(folder.path, ignore_errors=True)
    ground.lane._call("claim", name=sent.name, launch=ground.lane._intent(sent), keys=[])
    assert ground.state(sent) is MachineState.STARTING
    assert ground.lane.poll(sent, "") == Pending("", queued=False)
    assert isinstance(ground.open().create(sent), Granted)


def test_a_start_that_comes_after_the_deletion_starts_nothing(ground: Ground) -> None:
    sent = ground.launch()
    ground.lane._call("claim", name=sent.name, launch=ground.lane._intent(sent), keys=[])
    ground.lane.delete(sent.name, sent.zone)
    assert ground.lane._call("start", name=sent.name, attempt_id=sent.attempt_id) == {"machine": None}
    assert not ground.box.folder(sent.name).path.exists()


def test_a_runner_that_is_not_in_the_store_is_a_failure_before_anything_is_claimed(ground: Ground) -> None:
    failure = ground.lane.create(dataclasses.replace(ground.launch(), runner_sha256="0" * 64))
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.scope) == (Outcome.CONFIG, Scope.LANE)


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "$(touch x)/../.."])
def test_a_name_that_is_no_folder_name_is_refused(ground: Ground, name: str) -> None:
    with pytest.raises((ValueError, LaneUnknownError)):
        ground.lane.find(name, "ssh.box")


def test_one_host_may_be_meant_without_its_name(ground: Ground) -> None:
    assert open_lane("ssh", ground.settings).name == "ssh.box"
    with pytest.raises(ConfigError, match="no host named 'fir'"):
        open_lane("ssh.fir", ground.settings)
    with pytest.raises(ConfigError, match="no one host"):
        open_lane("ssh", Settings(home=ground.settings.home))
    assert ground.lane.room().gpus == 4
