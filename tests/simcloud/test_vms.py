"""Simulated VMs: real process trees, in a namespace where that is allowed and below a sub-reaper elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.simdesk import Desk, wait_for
from tests.fakes.simworld import ZONE
from widelane.simcloud.vminit import processes

pytestmark = pytest.mark.slow

SCENARIO = """
clock: {rate: 300}
preempt_grace_seconds: 60
stock: [{zone: us-central1-a, count: 9}]
visible_gpus: {a2-ultragpu-8g: 7}
"""

FAMILY = """
echo $$ > self
python3 - <<'END'
import os, time
def down(depth):
    open(f"child{depth}", "w").write(str(os.getpid()))
    os.setsid()
    if depth and os.fork():
        if depth == 2:
            os._exit(0)
        time.sleep(1000)
    elif depth:
        down(depth - 1)
    time.sleep(1000)
if not os.fork():
    down(3)
END
env -i HOME=/nowhere setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1000; done' &
echo ready
"""


def _privileged() -> bool:
    return os.geteuid() == 0


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("namespace", marks=pytest.mark.skipif(not _privileged(), reason="PID namespaces need root here")),
        "reaper",
    ],
)
def server(request, tmp_path_factory) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp(request.param), SCENARIO, isolation=request.param)
    yield desk
    desk.stop()


@pytest.fixture
def desk(server) -> Iterator[Desk]:
    yield server
    server.clear()


def tree(folder: Path) -> list[int]:
    """Every process that has to do with a VM's folder, and what descends from one."""
    parents: dict[int, int] = {}
    mine: set[int] = set()
    for pid in processes():
        place = Path(f"/proc/{pid}")
        try:
            state, parent = (place / "stat").read_text().rpartition(")")[2].split()[:2]
            traces = (place / "environ").read_bytes() + (place / "cmdline").read_bytes()
            traces += os.fsencode((place / "cwd").readlink())
        except OSError:
            continue
        if state not in "ZX":
            parents[pid] = int(parent)
            if os.fsencode(folder) in traces:
                mine.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return sorted(mine)


def test_the_start_up_script_sees_the_gpus_of_its_machine(desk):
    desk.run("vm", "nvidia-smi -L; nvidia-smi --query-gpu=index,memory.total --format=csv,noheader,nounits; echo end")
    lines = desk.said("vm", "end").split("\n")
    assert [line.partition(" (UUID: GPU-")[0] for line in lines[:4]] == [
        f"GPU {n}: NVIDIA A100-SXM4-80GB" for n in range(4)
    ]
    assert lines[4:8] == [f"{n}, 81920" for n in range(4)]


def test_a_machine_may_show_fewer_gpus_than_it_should(desk):
    desk.run("vm", "nvidia-smi -L | wc -l", machine_type="a2-ultragpu-8g")
    assert "7" in desk.said("vm", "exit status").split("\n")[0]


def test_a_machine_without_gpu_has_no_nvidia_smi(desk):
    desk.run("vm", "nvidia-smi -L || echo none", machine_type="e2-standard-2", model="STANDARD")
    desk.said("vm", "none")


def test_nothing_of_the_host_leaks_into_the_vm(desk):
    desk.run("vm", "echo $(env | cut -d= -f1); pwd; echo $PATH; echo $(ls /proc/self/fd); echo end")
    names, folder, path, open_files, *_ = desk.said("vm", "end").split("\n")
    root = desk.root("vm")
    assert set(names.split()) == {"GCE_METADATA_HOST", "HOME", "LANG", "PATH", "PWD", "TMPDIR"}
    assert folder == str(root / "home")
    assert path.split(":")[0] == str(root / "bin")
    assert open_files.split() == ["0", "1", "2", "3"]


def test_python_in_the_vm_is_new_enough(desk):
    desk.run("vm", "python3 -c 'import sys; print(sys.version_info >= (3, 9))'")
    assert desk.said("vm", "exit status").startswith("True")


def test_the_vm_stays_when_its_script_ends(desk):
    desk.run("vm", "exit 3")
    desk.said("vm", "startup-script exit status 3")
    assert desk.get("vm").status == "RUNNING"


def test_a_delete_kills_everything_in_the_vm(desk):
    desk.run("vm", FAMILY)
    desk.said("vm", "ready")
    root = desk.root("vm")
    wait_for((root / "home" / "child0").exists)
    assert desk.state_of("vm")["isolation"] == desk.isolation
    assert len(tree(root)) >= 5
    desk.delete("vm")
    assert tree(root) == []
    wait_for(lambda: not root.exists())


def test_a_fork_storm_dies_too(desk):
    desk.run("vm", "f() { while :; do setsid sh -c 'sleep 0.01; sleep 1000' & sleep 0.002; done; }; f & echo ready")
    desk.said("vm", "ready")
    root = desk.root("vm")
    wait_for(lambda: len(tree(root)) > 20)
    desk.delete("vm")
    assert tree(root) == []


def test_power_off_ends_the_vm(desk):
    desk.run("vm", FAMILY + "poweroff")
    root = desk.root("vm")
    wait_for(lambda: desk.get("vm").status == "TERMINATED")
    assert tree(root) == []


def test_a_vm_whose_first_process_is_killed_leaves_nothing(desk):
    desk.run("vm", "setsid sleep 1000 & echo ready")
    desk.said("vm", "ready")
    os.kill(desk.state_of("vm")["pid"], 9)
    wait_for(lambda: desk.get("vm").status == "TERMINATED")
    assert tree(desk.root("vm")) == []


def test_the_run_limit_is_kept_without_anyone_calling(desk):
    desk.run("vm", "echo ready", limit=300)
    desk.said("vm", "ready")
    root, pid = desk.root("vm"), desk.state_of("vm")["pid"]
    assert Path(f"/proc/{pid}").exists()
    wait_for(lambda: not tree(root))
    wait_for(lambda: not desk.state_of("vm"))


def test_preemption_shows_in_the_metadata_then_kills(desk):
    desk.run(
        "vm",
        """
at="http://$GCE_METADATA_HOST/computeMetadata/v1/instance/preempted?wait_for_change=true"
python3 - "$at" <<'END'
import sys, urllib.request
asked = urllib.request.Request(sys.argv[1], headers={"Metadata-Flavor": "Google"})
print("waiting", flush=True)
print("preempted:", urllib.request.urlopen(asked).read().decode(), flush=True)
import time
time.sleep(1000)
END
""",
        action="STOP",
    )
    desk.said("vm", "waiting")
    desk.sim("POST", "preempt", instance="vm")
    desk.said("vm", "preempted: TRUE")
    wait_for(lambda: desk.get("vm").status == "TERMINATED")
    assert tree(desk.root("vm")) == []
    operations = desk.clients.operations.list(project=desk.project, zone=ZONE)
    assert "compute.instances.preempted" in {each.operation_type for each in operations}
