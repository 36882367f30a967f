"""A real SLURM on this machine: its own daemons, keys, ports and configuration, three nodes with GPU devices."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import guards
from widelane.runner.host import processes

DAEMONS = ("munged", "slurmctld", "slurmd", "slurmstepd", "sbatch", "squeue")
NODES = {"gpu1": ("a100", 8, 16), "gpu2": ("a100", 4, 16), "gpu3": ("h100", 2, 8)}
"""GPU type, GPUs and CPUs of each node."""
_START_SECONDS = 30.0
_CONF = """\
ClusterName=fake
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={root}/run/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool/%n
SlurmctldPidFile={root}/run/slurmctld.pid
SlurmdPidFile={root}/run/slurmd.%n.pid
SlurmctldLogFile={root}/log/slurmctld.log
SlurmdLogFile={root}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
GresTypes=gpu
ReturnToService=2
MinJobAge=300
MessageTimeout=30
SlurmctldTimeout=120
SlurmdTimeout=300
KillWait=15
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=200000,batch_sched_delay=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdParameters=config_overrides
{nodes}
PartitionName=DEFAULT DefMemPerCPU=100 MaxTime=1-00:00:00 PriorityTier=10 PreemptMode=OFF
PartitionName=main Nodes=ALL Default=YES DefaultTime=10:00
PartitionName=four Nodes=gpu2 MaxTime=02:00:00
PartitionName=short Nodes=gpu1 MaxTime=00:30:00
PartitionName=down Nodes=gpu3 State=DOWN
PartitionName=scavenge Nodes=gpu3 PriorityTier=1 PreemptMode=CANCEL
PartitionName=over Nodes=gpu3 PriorityTier=20
"""


def missing() -> str:
    """Why there can be no cluster on this machine; "" when there can."""
    absent = [name for name in DAEMONS if name != "slurmstepd" and _program(name) is None]
    if absent:
        return f"no {', '.join(absent)} (Debian: slurm-wlm slurm-client munge)"
    if os.geteuid() != 0:
        return "munged and slurmd have to be started as root"
    return ""


def _program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")


class Cluster:
    """The daemons under one folder; `conf` is for SLURM_CONF."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.conf = root / "slurm.conf"
        self.host = socket.gethostname().partition(".")[0]
        ports = _free_ports(1 + len(NODES))
        self._port, self._node_ports = ports[0], dict(zip(NODES, ports[1:], strict=True))

    def start(self) -> None:
        """Return when every node is idle."""
        for folder in ("state", "log", "run", "dev", *(f"spool/{node}" for node in NODES)):
            (self.root / folder).mkdir(parents=True)
        self._configure()
        run = self.root / "run"
        key = self.root / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self._daemon(
            "munged",
            "--force",
            f"--key-file={key}",
            f"--socket={run}/munge.socket",
            f"--pid-file={run}/munged.pid",
            f"--log-file={self.root}/log/munged.log",
            f"--seed-file={run}/munged.seed",
        )
        self._daemon("slurmctld", "-f", str(self.conf), "-i")
        for node in NODES:
            self.start_node(node)
        self.wait_idle()

    def start_node(self, node: str) -> None:
        """Start one slurmd."""
        self._daemon("slurmd", "-f", str(self.conf), "-N", node)

    def wait_idle(self) -> None:
        """Return when every node is idle."""
        until = time.monotonic() + _START_SECONDS
        while set(self.ask("sinfo", "-h", "-N", "-p", "main", "-t", "idle", "-o", "%N").split()) != set(NODES):
            assert time.monotonic() < until, self.logs()
            time.sleep(0.05)

    def stop(self) -> None:
        """End every daemon and whatever it left, and see it gone."""
        for pid in self.pids("*"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 10
        while self.alive() and time.monotonic() < until:
            time.sleep(0.02)
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def pids(self, name: str) -> list[int]:
        """Daemons by the name of their pid file (`slurmd.gpu1`)."""
        found: list[int] = []
        for file in (self.root / "run").glob(f"{name}.pid"):
            with contextlib.suppress(ValueError, OSError):
                found.append(int(file.read_text()))
        return [pid for pid in found if Path(f"/proc/{pid}").exists()]

    def alive(self) -> list[int]:
        """Everything that was started under this cluster's configuration, jobs included."""
        return processes.marked(f"SLURM_CONF={self.conf}".encode())

    def ask(self, *argv: str) -> str:
        """What a client command printed; "" when it failed."""
        done = subprocess.run(argv, capture_output=True, text=True, env=self._env, timeout=60, check=False)
        return done.stdout

    def states(self, name: str) -> list[str]:
        """States of the jobs of that name, ended ones included."""
        return self.ask("squeue", "-h", "-t", "all", "-n", name, "-o", "%T").split()

    def logs(self) -> str:
        """The last lines that the daemons wrote."""
        return "\n".join(
            f"{file.name}: {line}"
            for file in sorted((self.root / "log").iterdir())
            for line in file.read_text(errors="replace").splitlines()[-5:]
        )

    @contextlib.contextmanager
    def stopped_controller(self) -> Iterator[None]:
        """Without slurmctld for the length of a `with`."""
        (pid,) = self.pids("slurmctld")
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _daemon(self, name: str, *options: str) -> None:
        program = _program(name)
        assert program is not None
        log = self.root / "log" / f"{name}.start"
        with log.open("ab") as out:
            done = subprocess.run(
                [program, *options], env=self._env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            )
        assert done.returncode == 0, log.read_text()

    @property
    def _env(self) -> dict[str, str]:
        """Nothing of the test in which the first job is wanted: the daemons outlive it."""
        kept = {name: os.environ[name] for name in ("PATH", guards.RUN_MARK) if name in os.environ}
        return {**kept, "SLURM_CONF": str(self.conf)}

    def _configure(self) -> None:
        nodes: list[str] = []
        gres: list[str] = []
        for node, (kind, gpus, cpus) in NODES.items():
            folder = self.root / "dev" / node
            folder.mkdir()
            for index in range(gpus):
                os.mknod(folder / f"nvidia{index}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            gres.append(f"NodeName={node} Name=gpu Type={kind} File={folder}/nvidia[0-{gpus - 1}]")
            nodes.append(
                f"NodeName={node} NodeHostname={self.host} NodeAddr=127.0.0.1 Port={self._node_ports[node]} "
                f"CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1 "
                f"RealMemory=20000 Gres=gpu:{kind}:{gpus}"
            )
        (self.root / "gres.conf").write_text("\n".join(gres) + "\n")
        self.conf.write_text(_CONF.format(host=self.host, port=self._port, root=self.root, nodes="\n".join(nodes)))


@contextlib.contextmanager
def running(root: Path) -> Iterator[Cluster]:
    """A cluster for the length of a `with`; skips the test, with the reason, where there can be none."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    cluster = Cluster(root)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
    assert not cluster.alive()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in held]
