"""Machines with our label: which of them `reap` deletes, and which it leaves alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.lane import Host
from tests.fakes.runs import DISPATCH, LADDER, RUN, Bed
from widelane.config import GcpSettings, LocalSettings, Settings
from widelane.dispatcher.reaping import reap_machines
from widelane.errors import ConfigError, LaneAuthError, LaneUnknownError
from widelane.lanes.protocol import Machine, MachineState
from widelane.ledger.events import AttemptIntended, PhaseStarted, WalkStarted
from widelane.models.reap import Fate, ReapReport, ReapRow, Standing

ATTEMPT = f"{DISPATCH}-1"


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path)
    yield made
    made.close()


def machine(**changes: Any) -> Machine:
    made = Machine(
        name=f"wl-{ATTEMPT}",
        zone="us-central1-a",
        id="1",
        state=MachineState.RUNNING,
        machine_type="a2-ultragpu-8g",
        provisioning_model="FLEX_START",
        attempt_id=ATTEMPT,
        labels={"widelane": "1", "widelane-run": RUN, "widelane-attempt": ATTEMPT},
    )
    return dataclasses.replace(made, **changes)


def reap(bed: Bed, *machines: Machine, delete: bool = False) -> ReapReport:
    bed.lane.machines_ = {each.name: each for each in machines}
    settings = Settings(home=bed.home, gcp=GcpSettings(project="p"))
    return reap_machines(settings, delete=delete, open_one=lambda _name, _settings: bed.lane, pause=bed.lane.pause)


def only(report: ReapReport) -> ReapRow:
    (row,) = report.rows
    return row


def send(bed: Bed, *, fence: int = 3600, wait: int = 600) -> None:
    """Write down all that is known before a create is sent."""
    bed.journal.append(RUN, PhaseStarted(units=6, already_done=0), DISPATCH)
    bed.journal.append(RUN, WalkStarted(number=1, ladder=LADDER, reason="first"), DISPATCH)
    now = bed.clock.now().isoformat()
    intended = AttemptIntended(
        attempt_id=ATTEMPT,
        walk=1,
        rung=0,
        zone="us-central1-a",
        name=f"wl-{ATTEMPT}",
        request_id="00000000-0000-4000-8000-000000000001",
        fence_seconds=fence,
        wait_seconds=wait,
        sent_at=now,
        deadline=now,
        spec_key="specs/x.json",
    )
    bed.journal.append(RUN, intended, DISPATCH)


def finish(bed: Bed) -> None:
    """Carry the run's one dispatch to its end on the machine of its first attempt."""
    bed.lane.answers[("a2-ultragpu-8g", "FLEX_START", "us-central1-a")] = ["grant"]
    bed.lane.hosts = [Host()]
    bed.work()
    bed.lane.deleted.clear()


def test_a_machine_whose_work_is_over_is_due_and_deleted_only_when_told(bed: Bed) -> None:
    finish(bed)
    row = only(reap(bed, machine()))
    assert (row.standing, row.fate) == (Standing.FINISHED, Fate.DUE)
    assert bed.lane.deleted == []
    report = reap(bed, machine(), delete=True)
    assert only(report).fate is Fate.DELETED
    assert bed.lane.deleted == [f"wl-{ATTEMPT}"]
    assert report.left == 0
    assert bed.kinds()[-1] == "machine_reaped"


def test_a_machine_that_a_run_is_at_is_kept(bed: Bed) -> None:
    send(bed)
    row = only(reap(bed, machine(), delete=True))
    assert (row.standing, row.fate) == (Standing.LIVE, Fate.KEPT)
    assert RUN in row.detail
    assert bed.lane.deleted == []


def test_a_machine_that_outlived_its_run_limit_is_due(bed: Bed) -> None:
    send(bed, fence=3600, wait=600)
    bed.clock.seconds = 3600 + 600 + 890
    assert only(reap(bed, machine())).standing is Standing.LIVE
    bed.clock.seconds += 20
    row = only(reap(bed, machine(), delete=True))
    assert (row.standing, row.fate) == (Standing.PAST_FENCE, Fate.DELETED)


@pytest.mark.parametrize(
    "change",
    [
        {"attempt_id": "r0102-other-1-1"},
        {"attempt_id": f"{DISPATCH}-2"},
        {"attempt_id": ""},
        {"attempt_id": "nonsense"},
        {"attempt_id": "%-1-1"},
        {"name": "somebody-elses"},
        {"zone": "us-east1-b"},
    ],
    ids=str,
)
def test_what_the_journal_does_not_know_is_reported_and_never_touched(bed: Bed, change: dict[str, Any]) -> None:
    finish(bed)
    row = only(reap(bed, machine(**change), delete=True))
    assert (row.standing, row.fate) == (Standing.FOREIGN, Fate.KEPT)
    assert bed.lane.deleted == []


def test_a_home_without_a_journal_owns_nothing(bed: Bed, tmp_path: Path) -> None:
    bed.lane.machines_ = {"x": machine()}
    settings = Settings(home=tmp_path / "new", gcp=GcpSettings(project="p"))
    report = reap_machines(settings, delete=True, open_one=lambda _name, _settings: bed.lane)
    assert only(report).standing is Standing.FOREIGN
    assert not (tmp_path / "new").exists()


def test_a_machine_that_does_not_go_is_told_as_still_there(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(bed)
    monkeypatch.setattr(bed.lane, "delete", lambda name, _zone: bed.lane.deleted.append(name))
    report = reap(bed, machine(), delete=True)
    assert (only(report).fate, report.left) == (Fate.DELETING, 1)


@pytest.mark.parametrize("error", [LaneUnknownError("gcp", "no answer"), LaneAuthError("gcp", "no", hint="log in")])
def test_a_lane_that_does_not_answer_is_named_and_the_others_are_looked_at(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail() -> tuple[Machine, ...]:
        raise error

    silent = dataclasses.replace(bed.lane)
    monkeypatch.setattr(silent, "machines", fail)
    bed.lane.machines_ = {"x": machine(name="x")}
    settings = Settings(home=bed.home, gcp=GcpSettings(project="p"), local=LocalSettings())
    report = reap_machines(
        settings, delete=True, open_one=lambda name, _settings: silent if name == "gcp" else bed.lane
    )
    assert [lane.lane for lane in report.unasked] == ["gcp"]
    assert [row.lane for row in report.rows] == ["local"]


def test_a_machine_whose_deletion_fails_is_still_told(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    finish(bed)

    def fail(_name: str, _zone: str) -> None:
        raise LaneUnknownError("gcp", "no answer")

    monkeypatch.setattr(bed.lane, "delete", fail)
    report = reap(bed, machine(), delete=True)
    assert (only(report).fate, report.left, len(report.unasked)) == (Fate.DUE, 1, 1)


def test_only_configured_lanes_can_be_asked(bed: Bed) -> None:
    with pytest.raises(ConfigError, match="no lane is configured"):
        reap_machines(Settings(home=bed.home), delete=False)
    with pytest.raises(ConfigError, match="'slurm'") as refused:
        reap_machines(Settings(home=bed.home, local=LocalSettings()), ("slurm",), delete=False)
    assert "local" in refused.value.hint
