"""doctor on the command line, over every kind of lane at once."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes import sshbox, sshd
from tests.fakes.slurm_cluster import Cluster
from tests.fakes.slurm_cluster import running as slurm_in

pytestmark = pytest.mark.slow

Widelane = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def box(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshbox.SshBox]:
    if sshd.missing():
        pytest.skip(sshd.missing())
    with sshbox.running(tmp_path_factory.mktemp("box")) as found:
        yield found


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with slurm_in(tmp_path_factory.mktemp("slurm")) as found:
        yield found


def pictured(*folders: Path) -> dict[str, tuple[int, str]]:
    paths = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    return {
        str(path): (path.lstat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "")
        for path in paths
        if path.name != "sshd.log"
    }


def test_a_look_at_hosts_and_clusters_changes_nothing(
    widelane: Widelane, tmp_path: Path, own_world: Path, box: sshbox.SshBox, cluster: Cluster
) -> None:
    (tmp_path / "widelane.toml").write_text(
        f"""\
[lanes.local]
[lanes.ssh.box]
host = "box"
gpus = 4
workdir = "{box.workdir}"
ssh_config = "{box.server.config}"
[lanes.slurm.here]
host = "localhost"
workdir = "{tmp_path / "jobs"}"
"""
    )
    before = pictured(tmp_path, own_world, box.server.folder)
    done = widelane("doctor", "--json", SLURM_CONF=str(cluster.conf))
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert report["status"] == "ok"
    assert {check["lane"] for check in report["checks"]} == {"machine", "local", "ssh.box", "slurm.here"}
    assert all({"name", "status", "message", "fix"} <= set(check) for check in report["checks"])
    assert pictured(tmp_path, own_world, box.server.folder) == before
    assert cluster.ask("squeue", "-h", "-t", "all") == ""


def test_without_any_network_it_says_what_to_fix(widelane: Widelane, tmp_path: Path) -> None:
    (tmp_path / "widelane.toml").write_text(
        '[lanes.gcp]\nproject = "p"\n[lanes.runpod]\n[lanes.ssh.box]\nhost = "no-such-host.invalid"\ngpus = 2\n'
    )
    done = widelane("doctor")
    assert (done.returncode, done.stderr) == (1, "")
    assert "fix: run gcloud auth application-default login" in done.stdout
    assert "RUNPOD_API_KEY" in done.stdout
    assert "no-such-host.invalid" in done.stdout


def test_a_machine_that_is_well_ends_well(widelane: Widelane, tmp_path: Path) -> None:
    (tmp_path / "widelane.toml").write_text("[lanes.local]\n")
    done = widelane("doctor", "local")
    assert (done.returncode, done.stderr) == (0, "")
    assert "local\n  ok    system" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].endswith("ok")


def test_a_lane_that_is_not_configured_is_bad_input(widelane: Widelane) -> None:
    done = widelane("doctor", "slurm")
    assert done.returncode == 2
    assert "slurm" in done.stderr
