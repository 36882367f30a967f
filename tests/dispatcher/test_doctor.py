"""The look at the machine itself: configuration, home, journal, store."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from widelane.dispatcher.doctor import examine_setup
from widelane.dispatcher.places import journal_path
from widelane.errors import ConfigError
from widelane.lanes.clock import SystemClock
from widelane.ledger import Journal
from widelane.models.checkup import CheckStatus, SetupCheck


def found(cwd: Path, *lanes: str) -> dict[str, SetupCheck]:
    return {check.name: check for check in examine_setup(cwd, os.environ, lanes).checks if check.lane == "machine"}


@pytest.fixture
def home(own_world: Path) -> Path:
    return own_world / "widelane"


def written(cwd: Path, text: str) -> Path:
    (cwd / "widelane.toml").write_text(text)
    return cwd


def test_a_new_machine_is_well_and_is_told_to_configure_a_lane(tmp_path: Path, home: Path) -> None:
    checks = found(tmp_path)
    assert {name: check.status for name, check in checks.items()} == {
        "configuration": CheckStatus.WARN,
        "home": CheckStatus.OK,
        "journal": CheckStatus.OK,
        "store": CheckStatus.OK,
    }
    assert "widelane init" in checks["configuration"].fix
    assert not home.exists()


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[lanes.gpc]\nproject = 'p'\n", "gpc"),
        ("this isn't TOML", "TOML"),
        ("[lanes.local]\n[policy]\nno_such_policy = 1\n", "no_such_policy"),
    ],
)
def test_a_configuration_that_can_not_be_used_fails_with_the_place(tmp_path: Path, text: str, word: str) -> None:
    check = found(written(tmp_path, text))["configuration"]
    assert check.status is CheckStatus.FAIL
    assert word in check.message
    assert check.fix


def test_a_home_that_can_not_be_made_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("WIDELANE_HOME", str(tmp_path / "file" / "home"))
    checks = found(tmp_path)
    assert checks["home"].status is CheckStatus.FAIL
    assert "WIDELANE_HOME" in checks["home"].fix


def test_a_home_that_others_can_write_is_warned_of(tmp_path: Path, home: Path) -> None:
    home.mkdir()
    home.chmod(0o777)
    check = found(tmp_path)["home"]
    assert check.status is CheckStatus.WARN
    assert f"chmod go-w {home}" in check.fix


def test_a_journal_is_read_and_stays_as_it_is(tmp_path: Path, home: Path) -> None:
    path = journal_path(home)
    Journal(path, SystemClock()).close()
    before = {entry.name: entry.read_bytes() for entry in home.iterdir()}
    assert found(tmp_path)["journal"].status is CheckStatus.OK
    assert {entry.name: entry.read_bytes() for entry in home.iterdir()} == before


def test_a_journal_that_is_held_open_is_left_in_peace(tmp_path: Path, home: Path) -> None:
    journal = Journal(journal_path(home), SystemClock())
    try:
        assert found(tmp_path)["journal"].status is CheckStatus.OK
    finally:
        journal.close()


def test_a_journal_that_is_no_journal_fails(tmp_path: Path, home: Path) -> None:
    home.mkdir()
    journal_path(home).write_bytes(b"nothing of the kind" * 100)
    check = found(tmp_path)["journal"]
    assert check.status is CheckStatus.FAIL
    assert str(journal_path(home)) in check.fix
    with pytest.raises(sqlite3.DatabaseError):
        sqlite3.connect(journal_path(home)).execute("SELECT 1 FROM run")


def test_a_store_that_can_not_be_used_fails(tmp_path: Path) -> None:
    check = found(written(tmp_path, 'store = "file:///proc/store"\n'))["store"]
    assert (check.status, bool(check.fix)) == (CheckStatus.FAIL, True)


def test_a_bucket_without_credentials_fails_with_the_login(tmp_path: Path) -> None:
    check = found(written(tmp_path, 'store = "gs://some-bucket"\n'))["store"]
    assert check.status is CheckStatus.FAIL
    assert "gcloud" in check.fix


def test_only_the_lanes_that_are_named_are_looked_at(tmp_path: Path) -> None:
    written(tmp_path, "[lanes.local]\n[lanes.runpod]\n")
    assert {check.lane for check in examine_setup(tmp_path, os.environ, ("local",)).checks} == {"machine", "local"}
    with pytest.raises(ConfigError, match="azure"):
        examine_setup(tmp_path, os.environ, ("azure",))


def test_the_report_is_as_bad_as_its_worst_check(tmp_path: Path) -> None:
    assert examine_setup(tmp_path, os.environ).status is CheckStatus.WARN
    assert examine_setup(written(tmp_path, "[lanes.local]\n"), os.environ).status is CheckStatus.OK
    assert examine_setup(written(tmp_path, "[lanes.runpod]\n"), os.environ).status is CheckStatus.FAIL
