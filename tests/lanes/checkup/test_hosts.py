"""The checks of ssh hosts and clusters, on a real sshd and a real SLURM."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.slurm_cluster import Cluster
from tests.fakes.sshbox import SshBox
from widelane.config import Settings, SlurmSettings
from widelane.config.settings import SshSettings
from widelane.lanes.checkup.sheet import Sheet
from widelane.models.checkup import CheckStatus, SetupCheck
from widelane.transport.line import control_folder

Examined = Callable[..., dict[str, SetupCheck]]
Pictured = Callable[..., dict[str, tuple[float, str]]]
pytestmark = pytest.mark.slow


def changed(settings: Settings, **section: Any) -> Settings:
    return settings.model_copy(update={"ssh": {"box": settings.ssh["box"].model_copy(update=section)}})


def test_a_host_that_has_what_the_section_says_passes_and_is_left_as_it_was(
    box: SshBox, tmp_path: Path, examined: Examined, pictured: Pictured
) -> None:
    home = tmp_path / "home"
    settings = box.settings(home)
    before = pictured(box.server.home, box.server.known_hosts.parent, tmp_path)
    found = examined("ssh.box", settings)
    assert {name: check.status for name, check in found.items()} == dict.fromkeys(found, CheckStatus.OK)
    assert set(found) == {"reach", "clock", "folder", "gpus"}
    after = pictured(box.server.home, box.server.known_hosts.parent, tmp_path)
    log = str(box.server.folder / "sshd.log")
    assert {**after, log: ""} == {**before, log: ""}
    assert not control_folder(home).exists()


def test_a_connection_that_is_open_is_used(box: SshBox, tmp_path: Path, examined: Examined) -> None:
    """A login with a second factor is done once, by hand: the look must not need another."""
    settings = box.settings(tmp_path / "home")
    from widelane.lanes.registry import open_lane  # noqa: PLC0415 - only this test opens one

    open_lane("ssh.box", settings).check("")
    accepted = box.server.said().count("Accepted publickey")
    assert examined("ssh.box", settings)["reach"].status is CheckStatus.OK
    assert box.server.said().count("Accepted publickey") == accepted
    box.disconnect()


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"gpus": 8}, ("gpus", CheckStatus.FAIL, "set gpus")),
        ({"gpus": 2}, ("gpus", CheckStatus.WARN, "gpus = 4")),
        ({"workdir": "/proc/nowhere"}, ("folder", CheckStatus.FAIL, "workdir")),
        ({"python": "no-such-python"}, ("reach", CheckStatus.FAIL, "python")),
        ({"host": "elsewhere.invalid"}, ("reach", CheckStatus.FAIL, "ssh")),
    ],
)
def test_what_a_host_lacks_is_said(
    section: dict[str, Any], told: tuple[str, CheckStatus, str], box: SshBox, tmp_path: Path, examined: Examined
) -> None:
    name, status, word = told
    check = examined("ssh.box", changed(box.settings(tmp_path / "home"), **section))[name]
    assert check.status is status
    assert word in check.fix


def test_a_host_whose_key_is_unknown_asks_for_a_login_and_stays_unknown(
    box: SshBox, tmp_path: Path, examined: Examined
) -> None:
    box.server.trust()
    try:
        check = examined("ssh.box", box.settings(tmp_path / "home"))["login"]
        assert check.status is CheckStatus.FAIL
        assert "fingerprint" in check.fix
        assert box.server.known_hosts.read_text() == ""
    finally:
        box.server.trust("host")


def cluster_settings(home: Path, **section: Any) -> Settings:
    given: dict[str, Any] = {"host": "localhost", "workdir": str(home / "work"), **section}
    return Settings(home=home, slurm={"test": SlurmSettings(**given)})


@pytest.fixture
def slurm(slurm_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("SLURM_CONF", str(slurm_cluster.conf))
    return slurm_cluster


def test_a_cluster_is_read_and_left_as_it_was(
    slurm: Cluster, tmp_path: Path, examined: Examined, pictured: Pictured
) -> None:
    before = pictured(tmp_path)
    next_job = slurm.ask("scontrol", "show", "config").partition("NEXT_JOB_ID")[2].splitlines()[0]
    found = examined("slurm.test", cluster_settings(tmp_path))
    assert {check.status for check in found.values()} == {CheckStatus.OK}
    assert found["gpus"].message == "up to 8 on a node"
    assert "not in accounting" in found["slurm"].message
    assert pictured(tmp_path) == before
    assert slurm.ask("scontrol", "show", "config").partition("NEXT_JOB_ID")[2].splitlines()[0] == next_job
    assert slurm.ask("squeue", "-h", "-t", "all", "-n", "doctor") == ""


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"partition": "nope"}, ("partition", CheckStatus.FAIL, "sinfo -s")),
        ({"time_limit": "soon"}, ("time_limit", CheckStatus.FAIL, "D-HH:MM:SS")),
        ({"options": ("gres=gpu",)}, ("options", CheckStatus.FAIL, "--name=value")),
        ({"gpu": "b200"}, ("gpus", CheckStatus.WARN, "gpu")),
        ({"gpus": 4}, ("gpus", CheckStatus.WARN, "gpus = 8")),
        ({"workdir": "/proc/nowhere"}, ("folder", CheckStatus.FAIL, "workdir")),
    ],
)
def test_what_a_cluster_lacks_is_said(
    section: dict[str, Any], told: tuple[str, CheckStatus, str], slurm: Cluster, tmp_path: Path, examined: Examined
) -> None:
    name, status, word = told
    check = examined("slurm.test", cluster_settings(tmp_path, **section))[name]
    assert check.status is status
    assert word in check.fix


def test_a_host_without_slurm_is_no_login_host(
    tmp_path: Path, examined: Examined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/false")
    check = examined("slurm.test", cluster_settings(tmp_path))["slurm"]
    assert check.status is CheckStatus.FAIL
    assert "sbatch" in check.message


def test_a_login_host_behind_ssh_that_is_down_is_said(box: SshBox, tmp_path: Path, examined: Examined) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host login\n  HostName 127.0.0.1\n  Port 9\n")
    check = examined("slurm.test", cluster_settings(tmp_path, host="login", ssh_config=str(config)))["reach"]
    assert check.status is CheckStatus.FAIL
    assert "ssh login" in check.fix


@pytest.mark.parametrize(
    ("apart", "status"),
    [(0.0, CheckStatus.OK), (-29.0, CheckStatus.OK), (-31.0, CheckStatus.WARN), (301.0, CheckStatus.FAIL)],
)
def test_clocks_that_are_apart_are_said(apart: float, status: CheckStatus) -> None:
    sheet = Sheet("ssh.box")
    sheet.clock(apart, "box")
    assert sheet.checks[0].status is status
    assert bool(sheet.checks[0].fix) is (status is not CheckStatus.OK)


def test_a_host_with_a_clock_of_its_own_is_told_by_how_much(box: SshBox, tmp_path: Path, examined: Examined) -> None:
    late = box.bin / "late-python"
    late.write_text(
        "#!/bin/sh\nexec python3 -c 'import time; real = time.time; time.time = lambda: real() - 90\n"
        "import sys;i=sys.stdin.buffer;exec(i.read(int(i.readline())))'\n"
    )
    late.chmod(0o755)
    check = examined("ssh.box", changed(box.settings(tmp_path / "home"), python=str(late)))["clock"]
    assert check.status is CheckStatus.WARN
    assert "ahead of that of box" in check.message


def test_ssh_settings_are_those_of_one_host(tmp_path: Path, examined: Examined) -> None:
    bad = Settings(home=tmp_path, ssh={"box": SshSettings(host="-oProxyCommand=x", gpus=1)})
    check = examined("ssh.box", bad)["configuration"]
    assert check.status is CheckStatus.FAIL
    assert check.fix
