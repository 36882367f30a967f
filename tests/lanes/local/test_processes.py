"""What the local lane does when its processes die, escape or were never started."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import guards
from tests.lanes.conftest import Site
from widelane.config import Settings
from widelane.errors import ConfigError
from widelane.lanes.local.folder import Folder
from widelane.lanes.local.lane import LocalLane
from widelane.lanes.protocol import Granted, Launch, MachineState, Pending
from widelane.lanes.registry import open_lane
from widelane.models.attempt import Failure, Outcome, Scope
from widelane.runner.host import processes

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]

ESCAPING = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(600)
"""


@pytest.fixture
def site(sites: Callable[[str], Site]) -> Site:
    return sites("local")


@pytest.fixture
def lane(site: Site) -> LocalLane:
    opened: LocalLane = site.open()
    return opened


def folder(site: Site, sent: Launch) -> Folder:
    return Folder(site.settings.home / "local" / sent.name)


def pids(of: Path) -> list[int]:
    return [int(entry.name) for entry in of.iterdir()]


@pytest.fixture
def escaping(
    site: Site, lane: LocalLane, tmp_path: Path, eventually: Eventually
) -> tuple[Launch, Callable[[], list[int]]]:
    """A machine whose work ignores TERM and has left its session; and the work's processes."""
    told = tmp_path / "told"
    told.mkdir()
    sent = site.launch((sys.executable, "-c", ESCAPING, str(told)))
    assert isinstance(lane.create(sent), Granted)
    eventually(lambda: len(pids(told)) == 2, within=20.0)
    return sent, lambda: [pid for pid in pids(told) if pid in processes.table()]


def test_deleting_ends_work_that_ignores_it_and_has_left_its_session(
    site: Site, escaping: tuple[Launch, Callable[[], list[int]]]
) -> None:
    sent, alive = escaping
    assert len(alive()) == 2
    quick = LocalLane(site.settings.home, site.open().clock, os.environ, grace_seconds=0.2)
    quick.delete(sent.name, sent.zone)
    assert alive() == []
    assert not folder(site, sent).path.exists()


def test_a_deleted_machine_ends_in_order_and_says_that_it_was_cancelled(
    site: Site, lane: LocalLane, eventually: Eventually
) -> None:
    sent = site.launch()
    lane.create(sent)
    progress = folder(site, sent).host / "progress.json"
    eventually(lambda: progress.exists() and json.loads(progress.read_text())["running"] == 1, within=20.0)
    lane.delete(sent.name, sent.zone)
    assert json.loads(site.yard.store.get(f"leases/{sent.attempt_id}/finished.json"))["state"] == "cancelled"


def test_a_machine_without_its_keeper_still_runs(
    site: Site, lane: LocalLane, escaping: tuple[Launch, Callable[[], list[int]]], eventually: Eventually
) -> None:
    sent, alive = escaping
    here = folder(site, sent)
    keeper = here.keeper()
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    eventually(lambda: here.keeper() is None)
    found = lane.find(sent.name, sent.zone)
    assert found is not None
    assert found.state is MachineState.RUNNING
    assert isinstance(lane.create(sent), Granted)
    lane.delete(sent.name, sent.zone)
    assert alive() == []


def test_work_that_outlived_keeper_and_runner_is_ended_with_its_machine(
    site: Site, lane: LocalLane, escaping: tuple[Launch, Callable[[], list[int]]], eventually: Eventually
) -> None:
    sent, alive = escaping
    here = folder(site, sent)
    keeper = here.keeper()
    assert keeper is not None
    os.kill(keeper, signal.SIGKILL)
    for pid in here.members():
        if "runner.pyz" in guards.describe(pid) and " host " in guards.describe(pid):
            os.kill(pid, signal.SIGKILL)

    def stopped() -> bool:
        found = lane.find(sent.name, sent.zone)
        return found is not None and found.state is MachineState.STOPPED

    eventually(stopped)
    assert alive()
    lane.delete(sent.name, sent.zone)
    assert alive() == []


def test_a_pid_that_now_belongs_to_another_is_not_touched(site: Site, lane: LocalLane, eventually: Eventually) -> None:
    sent = site.launch()
    lane.create(sent)
    here = folder(site, sent)
    keeper = here.keeper()
    assert keeper is not None
    for pid in here.members():
        os.kill(pid, signal.SIGKILL)
    with subprocess.Popen(["sleep", "600"]) as innocent:
        stat = Path(f"/proc/{innocent.pid}/stat").read_text().split(" ")
        stat[21] = str(int(stat[21]) + 1)
        here.process.write_text(" ".join(stat))
        eventually(lambda: not here.members())
        lane.delete(sent.name, sent.zone)
        assert innocent.poll() is None
        innocent.kill()


def test_an_intent_that_was_never_carried_out_is_carried_out_by_the_next_create(site: Site, lane: LocalLane) -> None:
    sent = site.launch()
    lane.create(sent)
    here = folder(site, sent)
    intent = here.launch.read_bytes()
    lane.delete(sent.name, sent.zone)
    here.path.mkdir()
    here.launch.write_bytes(intent)
    assert lane.poll(sent, "") == Pending("", queued=False)
    assert isinstance(lane.create(sent), Granted)


def test_a_machine_that_ended_is_not_started_again_by_its_own_create(
    site: Site, lane: LocalLane, eventually: Eventually
) -> None:
    sent = site.launch(("true",))
    lane.create(sent)

    def stopped() -> bool:
        found = lane.find(sent.name, sent.zone)
        return found is not None and found.state is MachineState.STOPPED

    eventually(stopped, within=20.0)
    again = lane.create(sent)
    assert isinstance(again, Granted)
    assert again.machine.state is MachineState.STOPPED


def test_the_work_inherits_the_environment_that_the_lane_was_given(
    site: Site, tmp_path: Path, eventually: Eventually
) -> None:
    seen = tmp_path / "seen"
    lane = open_lane("local", site.settings, {**os.environ, "KEY_OF_THE_WORK": str(seen)})
    code = "import os, pathlib; pathlib.Path(os.environ['KEY_OF_THE_WORK']).touch()"
    assert isinstance(lane.create(site.launch((sys.executable, "-c", code))), Granted)
    eventually(seen.exists, within=20.0)


def test_a_runner_that_is_not_in_the_store_is_a_failure_of_the_lane(site: Site, lane: LocalLane) -> None:
    sent = dataclasses.replace(site.launch(), runner_sha256="0" * 64)
    failure = lane.create(sent)
    assert isinstance(failure, Failure)
    assert (failure.outcome, failure.scope, failure.outcome_known) == (Outcome.CONFIG, Scope.LANE, True)
    assert "0" * 64 in failure.message


def test_a_home_that_cannot_be_made_is_told_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lane = open_lane("local", Settings(home=tmp_path / "file" / "home"))
    with pytest.raises(ConfigError, match="WIDELANE_HOME"):
        lane.check("")


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden"])
def test_a_name_that_is_no_folder_name_is_refused(site: Site, lane: LocalLane, name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a machine"):
        lane.delete(name, "local")
