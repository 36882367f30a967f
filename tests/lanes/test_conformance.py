"""What every lane promises, run against each of them with real processes behind it."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import guards
from tests.lanes.conftest import SHORT_WORK, Site
from widelane.lanes.protocol import Granted, Lane, Launch, Machine, MachineState, Pending, Progress
from widelane.models.attempt import Failure, Outcome

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]


LANES = [
    "gcp",
    "local",
    "ssh.box",
    "slurm.test",
    pytest.param("slurm.far", marks=pytest.mark.weekly),  # the same cluster by ssh; a minute in all
    "runpod",
    "runpod by sdk",
]


@pytest.fixture(params=LANES)
def site(request: pytest.FixtureRequest, sites: Callable[[str], Site]) -> Site:
    return sites(request.param)


@pytest.fixture
def lane(site: Site) -> Lane:
    opened: Lane = site.open()
    return opened


@pytest.fixture
def granted(lane: Lane, eventually: Eventually) -> Callable[[Launch], Machine]:
    """Create and follow until the machine runs."""

    def wait(sent: Launch) -> Machine:
        seen: list[Progress] = [lane.create(sent)]

        def decided() -> bool:
            last = seen[-1]
            if isinstance(last, Pending):
                seen.append(lane.poll(sent, last.operation))
            return not isinstance(seen[-1], Pending)

        eventually(decided)
        last = seen[-1]
        assert isinstance(last, Granted), last
        return last.machine

    return wait


def test_a_lane_that_can_work_passes_its_check(site: Site, lane: Lane) -> None:
    lane.check(site.yard.store.url)
    assert lane.name == site.name
    assert lane.poll_seconds > 0


def test_a_created_machine_runs_and_is_described_by_the_service(
    site: Site, lane: Lane, granted: Callable[[Launch], Machine]
) -> None:
    sent = site.launch()
    machine = granted(sent)
    assert (machine.state, machine.attempt_id) == (MachineState.RUNNING, sent.attempt_id)
    assert (machine.machine_type, machine.provisioning_model) == (
        sent.rung.machine_type,
        sent.rung.provisioning_model,
    )
    found = site.open().find(sent.name, sent.zone)
    assert found is not None
    assert (found.id, found.labels["widelane"]) == (machine.id, "1")


def test_the_work_runs_to_its_end_and_its_last_word_is_in_the_store(
    site: Site, lane: Lane, granted: Callable[[Launch], Machine], eventually: Eventually
) -> None:
    sent = site.launch(SHORT_WORK)
    granted(sent)
    key = f"leases/{sent.attempt_id}/finished.json"
    eventually(lambda: site.told(sent, key), within=30.0)
    assert json.loads(site.yard.store.get(key))["state"] == "succeeded"

    def over() -> bool:
        found = lane.find(sent.name, sent.zone)
        return found is None or found.state is MachineState.STOPPED

    eventually(over)


def test_the_same_create_again_finds_the_one_machine(
    site: Site, lane: Lane, granted: Callable[[Launch], Machine]
) -> None:
    sent = site.launch()
    first = granted(sent)
    again = site.open().create(sent)
    assert not isinstance(again, Failure)
    assert granted(sent).id == first.id
    assert [found.name for found in lane.machines()].count(sent.name) == 1


def test_creates_at_the_same_time_make_one_machine(
    site: Site, lane: Lane, granted: Callable[[Launch], Machine]
) -> None:
    sent = site.launch()
    answers: list[Progress] = []
    threads = [threading.Thread(target=lambda: answers.append(site.open().create(sent))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not [answer for answer in answers if isinstance(answer, Failure)]
    machine = granted(sent)
    assert {answer.machine.id for answer in answers if isinstance(answer, Granted)} <= {machine.id}


def test_a_name_that_another_attempt_holds_is_a_conflict_and_stays_untouched(
    site: Site, lane: Lane, granted: Callable[[Launch], Machine], eventually: Eventually
) -> None:
    first = site.launch()
    machine = granted(first)
    second = dataclasses.replace(site.launch(), name=first.name)
    failures: list[Any] = [lane.create(second)]

    def decided() -> bool:
        if isinstance(failures[-1], Pending):
            failures.append(lane.poll(second, failures[-1].operation))
        return not isinstance(failures[-1], Pending)

    eventually(decided)
    assert isinstance(failures[-1], Failure)
    assert failures[-1].outcome is Outcome.CONFLICT
    found = lane.find(first.name, first.zone)
    assert found is not None
    assert (found.id, found.state) == (machine.id, MachineState.RUNNING)


def test_a_deleted_machine_is_gone_and_deleting_it_again_succeeds(
    site: Site, lane: Lane, granted: Callable[[Launch], Machine], eventually: Eventually
) -> None:
    sent = site.launch()
    granted(sent)
    lane.delete(sent.name, sent.zone)
    lane.delete(sent.name, sent.zone)
    eventually(lambda: lane.find(sent.name, sent.zone) is None)
    assert sent.name not in {found.name for found in lane.machines()}
    lane.delete(sent.name, sent.zone)


def test_a_machine_that_is_still_being_made_can_be_deleted(site: Site, lane: Lane, eventually: Eventually) -> None:
    sent = site.launch()
    lane.create(sent)
    lane.delete(sent.name, sent.zone)
    eventually(lambda: lane.find(sent.name, sent.zone) is None)


def test_what_was_never_made_is_absent(site: Site, lane: Lane) -> None:
    assert lane.find("wl-never", site.zone) is None
    assert lane.preempted("wl-never", site.zone) is False
    lane.delete("wl-never", site.zone)


def test_machines_lists_what_any_process_made(site: Site, granted: Callable[[Launch], Machine], lane: Lane) -> None:
    sent = [site.launch(), site.launch()]
    for each in sent:
        granted(each)
    listed = {found.name: found for found in site.open().machines()}
    assert {each.name for each in sent} <= listed.keys()
    assert {listed[each.name].attempt_id for each in sent} == {each.attempt_id for each in sent}


def test_a_machine_says_how_its_work_gets_on(
    site: Site, lane: Lane, granted: Callable[[Launch], Machine], eventually: Eventually
) -> None:
    sent = site.launch()
    granted(sent)

    def told() -> bool:
        found = lane.find(sent.name, sent.zone)
        return found is not None and found.progress != "" and json.loads(found.progress)["running"] == 1

    eventually(told, within=20.0)
    assert lane.preempted(sent.name, sent.zone) is False


def test_a_runner_that_dies_is_started_again_and_the_work_goes_on(
    site: Site, lane: Lane, granted: Callable[[Launch], Machine], eventually: Eventually, tmp_path: Path
) -> None:
    held, killed = tmp_path / "held", tmp_path / "killed"
    work = (
        "import os, pathlib, signal, time\n"
        f"held, killed = pathlib.Path({str(held)!r}), pathlib.Path({str(killed)!r})\n"
        "held.touch()\n"
        "while not killed.exists(): time.sleep(0.01)\n"
        "open('out.txt', 'w').write('done')\n"
    )
    sent = site.launch(("python3", "-c", work))
    granted(sent)
    eventually(held.exists, within=20.0)
    _kill_runner(sent)
    killed.touch()
    key = f"leases/{sent.attempt_id}/finished.json"
    eventually(lambda: site.told(sent, key), within=30.0)
    finished = json.loads(site.yard.store.get(key))
    assert (finished["state"], finished["succeeded"]) == ("succeeded", 1)


def _kill_runner(sent: Launch) -> None:
    """SIGKILL to the process that holds the runner's root folder; what it started is left alone."""
    found = [pid for pid in guards.pids() if sent.spec_key in _words(pid) and "runner.pyz" in _words(pid)[1]]
    assert len(found) == 1, [guards.describe(pid) for pid in found]
    os.kill(found[0], signal.SIGKILL)


def _words(pid: int) -> list[str]:
    try:
        return [*Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0"), "", ""]
    except OSError:
        return ["", ""]
