"""What a caller sees: refusals that create nothing, one run for one work, results that can be fetched."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.killing import Scene
from widelane import plan
from widelane.config import GcpSettings, LocalSettings, RunpodSettings, Settings, SlurmSettings
from widelane.dispatcher import Client, SimTarget
from widelane.dispatcher.assembly import make_bench
from widelane.dispatcher.locking import is_held
from widelane.dispatcher.places import journal_path, lock_path
from widelane.dispatcher.schedule import run_state
from widelane.errors import BusyError, InputError, LaneAuthError, NotFoundError
from widelane.lanes.clock import SystemClock
from widelane.ledger import Journal, fold
from widelane.models.dispatch import DispatchAnswer, DispatchState
from widelane.router import judge

pytestmark = pytest.mark.slow

LOCAL = """\
widelane: 1
{task}
phases:
  - name: count
    gpus: 0
    wall_minutes: 1
    axes: {{part: 3}}
    source: {{path: .}}
    command: python3 count.py {{part}}
    outputs: ["out/{{part}}.txt"]
    merge: python3 count.py sum
    merge_outputs: [sum.txt]
{more}
"""
SECOND = """\
  - name: page
    gpus: 0
    wall_minutes: 1
    after: [count]
    source: {path: .}
    command: python3 count.py page
    outputs: [page.txt]
"""
COUNT = """\
import pathlib, sys
word = sys.argv[1]
print("working on", word)
if word == "sum":
    total = sum(int(path.read_text()) for path in pathlib.Path("out").glob("*.txt"))
    pathlib.Path("sum.txt").write_text(str(total))
elif word == "page":
    pathlib.Path("page.txt").write_text("the sum is " + pathlib.Path("sum.txt").read_text())
else:
    pathlib.Path("out").mkdir(exist_ok=True)
    pathlib.Path(f"out/{word}.txt").write_text(word)
"""


class Local:
    """A home whose only lane is this machine."""

    def __init__(self, folder: Path) -> None:
        self.job = folder / "job"
        self.job.mkdir()
        (self.job / "count.py").write_text(COUNT)
        self.settings = Settings(home=folder / "home", local=LocalSettings())
        self.client = Client(self.settings)

    def submit(self, text: str, **options: object) -> DispatchAnswer:
        parsed = plan.parse(text, "<argument>", str(self.job))
        verdict = judge(parsed, make_bench(self.settings))
        return self.client.submit(parsed, verdict, **options)  # type: ignore[arg-type]  # options are checked by the call itself

    def run(self, text: str, **options: object) -> str:
        answer = self.submit(text, **options)
        assert answer.run_id is not None, answer
        status = self.client.wait(answer.run_id, 60, enough=lambda _status: False)
        assert status.state is DispatchState.SUCCEEDED, status
        return answer.run_id


def text(task: str = "", more: str = "") -> str:
    return LOCAL.format(task=f'task: "{task}"' if task else "", more=more)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    made = Local(tmp_path)
    yield made
    lock = lock_path(made.settings.home)
    if is_held(lock):
        # It would leave by itself a little later; nothing is lost when it is killed.
        os.kill(int(lock.read_text()), signal.SIGKILL)


def test_phases_run_in_order_on_this_machine_and_their_outputs_can_be_fetched(local: Local, tmp_path: Path) -> None:
    run_id = local.run(text(more=SECOND))
    files = local.client.pull(run_id, tmp_path / "got")
    assert (tmp_path / "got" / "page.txt").read_text() == "the sum is 3"
    assert {path.name for path in files} == {"0.txt", "1.txt", "2.txt", "sum.txt", "page.txt"}
    only = local.client.pull(run_id, tmp_path / "one", phase="page")
    assert [path.name for path in only] == ["page.txt"]
    assert "working on 1" in local.client.log(run_id, phase="count", unit=1)
    assert "working on 0" not in local.client.log(run_id, phase="count", unit=1)


def test_a_run_whose_units_are_all_done_says_so_and_creates_nothing_and_fresh_runs_it_again(local: Local) -> None:
    first = local.run(text())
    again = local.submit(text())
    assert (again.started, again.reason, again.run_id) == (False, "already_done", first)
    fresh = local.run(text(), fresh=True)
    assert fresh != first
    assert any(event.kind == "attempt_intended" for event in local.client.events(fresh))


def test_what_was_pulled_beside_the_code_does_not_make_it_other_work(local: Local) -> None:
    first = local.run(text())
    local.client.pull(first, local.job / first)
    assert local.submit(text()).run_id == first
    local.client.pull(first, local.job / "results")
    assert local.run(text()) != first


def test_logs_come_in_the_order_of_the_units_and_a_unit_that_is_none_is_named(local: Local) -> None:
    run_id = local.run(text().replace("part: 3", "part: 11"))
    heads = [line for line in local.client.log(run_id).splitlines() if line.startswith("==>")]
    assert heads == [*(f"==> count {n}-1 <==" for n in range(11)), "==> count merge-1 <=="]
    with pytest.raises(NotFoundError, match="no unit 11") as refused:
        local.client.log(run_id, unit=11)
    assert "count has 0 to 10" in refused.value.hint


def test_a_run_whose_phases_have_all_ended_is_not_called_queued_before_its_own_end(local: Local) -> None:
    run_id = local.run(text())
    with closing(Journal(journal_path(local.settings.home), SystemClock())) as journal:
        before = fold(record for record in journal.events(run_id) if record.event.kind != "run_ended")
    assert before.ended is None
    assert run_state(before) is DispatchState.RELEASING


def test_another_wording_of_the_same_work_is_the_same_run(local: Local) -> None:
    first = local.run(text())
    worded = text().replace("    gpus: 0\n", '    gpus: 0\n    justification: "because"\n')
    assert local.submit(worded).run_id == first


def test_one_phase_is_run_alone_when_the_ones_before_it_are_done(local: Local) -> None:
    with pytest.raises(InputError) as refused:
        local.submit(text(more=SECOND), phase="page")
    assert refused.value.code == "not_run"
    local.run(text(more=SECOND), phase="count")
    run_id = local.run(text(more=SECOND), phase="page")
    assert [phase.name for phase in local.client.status(run_id).phases] == ["page"]


def test_a_failed_phase_stops_the_ones_after_it_and_a_repeat_runs_only_what_has_no_record(local: Local) -> None:
    script = local.job / "count.py"
    script.write_text(COUNT.replace('print("working on", word)', 'sys.exit(3) if word == "1" else None'))
    answer = local.submit(text(more=SECOND))
    assert answer.run_id is not None
    status = local.client.wait(answer.run_id, 60, enough=lambda _status: False)
    assert status.state is DispatchState.FAILED
    count, page = status.phases
    assert (count.units.succeeded, count.units.failed) == (2, 1)
    assert (page.state, page.reason) == (DispatchState.STOPPED, "dependency_failed")


def test_a_plan_to_be_revised_is_refused_before_anything_is_written(local: Local) -> None:
    revised = text().replace(
        "    gpus: 0\n    wall_minutes: 1\n", "    intent: capture-7b\n    gpu_hours: 8\n    width: 1\n"
    )
    answer = local.submit(revised)
    assert (answer.started, answer.reason, answer.run_id) == (False, "plan_revise", None)
    assert answer.plan is not None
    assert answer.plan.phases[0].findings
    assert not (local.settings.home / "store").exists()
    assert local.client.runs() == ()


@pytest.mark.parametrize(
    ("change", "code", "place"),
    [
        (
            ("    source: {path: .}\n    command: python3 count.py {part}\n", "    source: {path: .}\n"),
            "no_command",
            ":4:",
        ),
        (("    after: [count]\n", "    after: [count]\n    hold: true\n"), "hold_unsupported", ":13:"),
        (("source: {path: .}", "source: {path: nowhere}"), "no_source", ""),
    ],
)
def test_what_can_not_be_carried_out_is_refused_with_its_place(
    local: Local, change: tuple[str, str], code: str, place: str
) -> None:
    with pytest.raises(InputError) as refused:
        local.submit(text(more=SECOND).replace(*change))
    assert refused.value.code == code
    assert refused.value.message.startswith(f"<argument>{place}")
    assert refused.value.hint
    assert local.client.runs() == ()


def test_a_phase_that_is_chosen_is_refused_at_its_own_place(local: Local) -> None:
    held = text(more=SECOND).replace("    after: [count]\n", "    after: [count]\n    hold: true\n")
    with pytest.raises(InputError) as refused:
        local.submit(held, phase="page")
    assert refused.value.message.startswith("<argument>:13:")


@pytest.mark.parametrize(
    "lanes",
    [
        {
            "gcp": GcpSettings(project="p", endpoint="http://127.0.0.1:9"),
            "slurm": {"hpc": SlurmSettings(host="login.example.org", gpus=8)},
        },
        {"slurm": {"hpc": SlurmSettings(host="login.example.org", gpus=8)}},
        {"runpod": RunpodSettings()},
    ],
    ids=str,
)
def test_secrets_are_refused_where_no_lane_hands_them_over(local: Local, lanes: dict[str, Any]) -> None:
    local.settings = Settings(home=local.settings.home, **lanes)
    local.client = Client(local.settings)
    gpu = "    intent: capture-7b\n    gpu_hours: 0.1\n    width: 1\n    secrets: [HF_TOKEN]\n"
    with pytest.raises(InputError, match="names secrets") as refused:
        local.submit(text().replace("    gpus: 0\n    wall_minutes: 1\n", gpu))
    assert refused.value.code == "secrets_unsupported"
    assert next(iter(lanes)) in refused.value.hint
    assert not local.settings.home.exists()


def test_work_on_this_machine_may_name_the_secrets_of_its_environment(local: Local) -> None:
    named = text().replace("    wall_minutes: 1\n", "    wall_minutes: 1\n    secrets: [HF_TOKEN]\n", 1)
    assert local.run(named)


def test_a_phase_that_is_not_in_the_plan_is_refused_with_the_ones_that_are(local: Local) -> None:
    with pytest.raises(InputError, match="no phase 'judge'") as refused:
        local.submit(text(), phase="judge")
    assert "count" in refused.value.hint


def test_a_lane_without_credentials_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    local = Local(tmp_path)
    local.settings = Settings(home=tmp_path / "home", gcp=GcpSettings(project="p", bucket="b"), local=LocalSettings())
    local.client = Client(local.settings)
    gpu = text().replace(
        "    gpus: 0\n    wall_minutes: 1\n", "    intent: capture-7b\n    gpu_hours: 0.1\n    width: 1\n"
    )
    with pytest.raises((LaneAuthError, InputError)):
        local.submit(gpu)
    assert local.client.runs() == ()


def test_questions_leave_an_empty_home_as_it_is(local: Local, tmp_path: Path) -> None:
    assert local.client.runs() == ()
    for ask in (local.client.status, local.client.events, local.client.cancel, local.client.release):
        with pytest.raises(NotFoundError, match="no run yet"):
            ask("last")
    assert not (tmp_path / "home").exists()


def test_run_ids_may_be_cut_short_and_wrong_ones_are_named(local: Local) -> None:
    with pytest.raises(NotFoundError):
        local.client.status("last")
    run_id = local.run(text())
    assert local.client.status(run_id[:6]).run_id == run_id
    assert local.client.status("last").run_id == run_id
    with pytest.raises(NotFoundError, match="nothing-like-it"):
        local.client.status("nothing-like-it")
    local.run(text(), fresh=True)
    with pytest.raises(InputError, match="fits 2 runs"):
        local.client.status("r")


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, units=40)
    yield made
    made.stop()


@pytest.mark.slow
def test_the_same_work_is_adopted_while_it_runs_and_other_work_in_its_place_refused(scene: Scene) -> None:
    def submit(changed: str) -> DispatchAnswer:
        parsed = plan.parse(changed, "<argument>", str(scene.folder / "job"))
        verdict = judge(parsed, make_bench(scene.settings))
        return scene.client.submit(parsed, verdict, sim=SimTarget(scene.sim.url))

    wording = scene.plan_text("one").replace("widelane: 1\n", 'widelane: 1\ntask: "77"\n')
    first = submit(wording)
    assert first.run_id is not None
    assert submit(wording).run_id == first.run_id
    assert submit(wording).reason == "adopted"
    with pytest.raises(BusyError) as refused:
        submit(wording.replace('SALT: "one"', 'SALT: "two"'))
    assert first.run_id in str(refused.value)
    running = scene.client.wait(first.run_id, 30, enough=lambda status: status.phases[0].units.running > 0)
    assert running.phases[0].machine is not None
    cancelled = scene.client.cancel(first.run_id, by="a person")
    assert cancelled.state.live
    ended = scene.ended(first.run_id)
    assert ended.state is DispatchState.CANCELLED
    assert scene.instances() == []
    assert scene.client.release(first.run_id).state is DispatchState.CANCELLED


LOOK = """\
import json, os, urllib.request
with urllib.request.urlopen(os.environ["CLOUD"] + "/sim/state") as answer:
    held = [instance["name"] for instance in json.load(answer)["instances"]]
with open("held.json", "w") as file:
    json.dump(held, file)
"""


def test_while_a_phase_without_gpus_runs_no_machine_is_held(scene: Scene, tmp_path: Path) -> None:
    (scene.folder / "job" / "look.py").write_text(LOOK)
    look = (
        "  - name: look\n    gpus: 0\n    after: [capture]\n    source: {path: ../job}\n"
        f"    env: {{CLOUD: {scene.sim.url!r}}}\n    command: python3 look.py\n    outputs: [held.json]\n"
    )
    parsed = plan.parse(scene.plan_text("one") + look, "<argument>", str(scene.folder / "plans"))
    verdict = judge(parsed, make_bench(scene.settings))
    run_id = scene.client.submit(parsed, verdict, sim=SimTarget(scene.sim.url)).run_id
    assert run_id is not None
    ended = scene.ended(run_id)
    assert [phase.lane for phase in ended.phases] == ["gcp", "local"]
    found = scene.client.pull(run_id, tmp_path / "out", phase="look")
    assert [json.loads(path.read_text()) for path in found] == [[]]
