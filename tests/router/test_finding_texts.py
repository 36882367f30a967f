"""How every finding reads: code, severity, message, fix and numbers, as they are told.

The expected words stand in findings.txt, one block a case. Read a change of it as a user would.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.benches import AMPLE, PROJECT, axes, make_bench, parsed, phase, quotas, single
from widelane.models.plan import Arm, Needs, Phase, Pin, ProvisioningModel
from widelane.models.verdict import Finding, FindingCode
from widelane.router import Bench, judge

EXPECTED = Path(__file__).parent / "findings.txt"
NO_GPU = {"axes": None, "command": None, "outputs": ()}
API = Phase(name="judge", gpus=0, after=("generate",), wall_minutes=60.0, hold=True)


def _x(count: int, command: str | tuple[str, ...] = "run {x}", **fields: Any) -> Phase:
    given: dict[str, Any] = {"axes": axes(x=count), "command": command, "outputs": (), "setup_minutes": 0.0}
    return phase(**{**given, **fields})


def _limited(cpus: float) -> Bench:
    listed = {**AMPLE, "A2_CPUS": (cpus, 0.0), "CPUS_PER_VM_FAMILY:A3": (0.0, 0.0)}
    return make_bench(lanes=("gcp",), quotas=quotas(PROJECT, us_central1=listed))


def _after(one: Phase, **fields: Any) -> Phase:
    return one.model_copy(update={"name": "second", "after": ("generate",), **fields})


CASES: dict[str, tuple[tuple[Phase, ...], Bench | None]] = {
    "a command that shards nothing": ((single(width=8),), None),
    "no command at all": ((single(width=8, command=None),), None),
    "a launcher with a fixed count": ((single(width=8, axes=None, command="torchrun --nproc_per_node 2 x.py"),), None),
    "one GPU for work that shards": ((phase(width=1),), None),
    "one GPU, quota unknown": ((phase(width=1),), make_bench(lanes=("gcp",), quotas=quotas(None, us_central1=None))),
    "more GPUs than units": ((_x(4, width=8),), None),
    "little work after set-up": ((_x(8, width=8, gpu_hours=8.0, setup_minutes=61.0, tail_minutes=1.0),), None),
    "a last wave that is not full": ((_x(9, width=8, gpu_hours=9.0),), None),
    "a width that is no multiple of the group": ((phase(width=4, gpus_per_shard=3),), None),
    "a group wider than the width": ((phase(width=2, gpus_per_shard=4),), None),
    "no width asked, a group that divides none": ((phase(gpus_per_shard=3),), None),
    "a count that is no divisor": ((single(width=8, axes=None, command="torchrun --nproc_per_node 3 x.py"),), None),
    "a count against the group": ((_x(8, "torchrun --nproc_per_node 2 x.py {x}", gpus_per_shard=4, width=8),), None),
    "devices set by the command": ((_x(8, "env CUDA_VISIBLE_DEVICES=0 run {x}", width=8),), None),
    "several machines": ((single(width=8, axes=None, command="torchrun --nnodes 2 --nproc_per_node gpu x.py"),), None),
    "a count that a narrower machine has not": (
        (single(width=8, axes=None, command="torchrun --nproc_per_node 8 x.py"),),
        None,
    ),
    "shards that are fixed": (
        (single(width=4, axes=None, command="run --shard {shard} --num-shards 4", outputs=("{shard}",)),),
        None,
    ),
    "an API phase that asks for GPUs": ((Phase(name="up", gpus=0, width=8, wall_minutes=5.0),), None),
    "an API phase that keeps a machine": ((phase(width=8), API), None),
    "an API phase that keeps one for who knows how long": (
        (phase(width=8), API.model_copy(update={"wall_minutes": None})),
        None,
    ),
    "silence about axes": ((single(axes=None, why=None),), None),
    "a width that no machine has": ((phase(width=3),), None),
    "a least width above the width": ((phase(width=2, min_width=4),), None),
    "a least width above all": ((phase(width=8, min_width=16),), None),
    "an intent with a near name": ((phase(intent="capture7b"),), None),
    "an intent like nothing": ((phase(intent="xyz"),), None),
    "no intent": ((phase(intent=None),), None),
    "needs that no machine holds": ((phase(width=8, needs=Needs(gpu_mem_gib=90.0, ram_gib=64.0)),), None),
    "needs that another width holds": ((phase(width=2, needs=Needs(ram_gib=600.0)),), None),
    "a disk that is too large": ((phase(width=1, needs=Needs(disk_gib=70000.0)),), None),
    "a pin that leaves no lane": ((phase(width=8, pin=Pin(lane="slurm", reason="habit")),), make_bench(lanes=("gcp",))),
    "a model that is not bought": (
        (
            single(
                intent="sweep-8g-h100",
                width=8,
                gpus_per_shard=8,
                pin=Pin(provisioning_model=ProvisioningModel.STANDARD, reason="long"),
            ),
        ),
        None,
    ),
    "a zone without the machine": ((phase(width=8, pin=Pin(zone="us-east1-b", reason="data")),), None),
    "no machine on Google Cloud": ((single(intent="ft-70b", width=8, gpus_per_shard=8),), None),
    "no pod with that memory": (
        (single(intent="ft-70b", width=8, gpus_per_shard=8, needs=Needs(gpu_mem_gib=200.0)),),
        make_bench(lanes=("runpod",)),
    ),
    "longer than a machine may run": ((single(gpu_hours=200.0, width=1),), None),
    "longer than the plan allows, a wider one is not": (
        (_x(400, gpu_hours=40.0, width=1, time_limit_hours=8.0),),
        None,
    ),
    "no estimate": ((phase(gpu_hours=None, width=8),), None),
    "minutes of another number of units": ((phase(gpu_hours=None, width=8, unit_minutes=(1.0, 2.0)),), None),
    "too many units": ((phase(axes=axes(a=2, b=10**7), command="run {a} {b}", outputs=(), width=8),), None),
    "an axis that the command does not name": ((phase(command="run {model}", outputs=(), width=8),), None),
    "a placeholder with a near name": ((phase(command="run {modle} {draw_set}", outputs=("{modle}",), width=8),), None),
    "a placeholder like nothing": ((_x(8, "run {x} {zzz}", width=8),), None),
    "an axis without values": ((_x(0, width=8),), None),
    "outputs that units share": ((_x(8, width=8, outputs=("out.json",)),), None),
    "an open quote": ((_x(8, "run '{x}", width=8),), None),
    "placeholders in set-up": ((_x(8, width=8, setup="pip install {x}", merge="join {shardz}"),), None),
    "operators of a shell": ((_x(8, "run {x} > a && b | c", width=8),), None),
    "an assignment": ((_x(8, "A=1 run {x}", width=8),), None),
    "a variable of another lane": (
        (_x(8, ("bash", "-c", "run {x} $SLURM_JOB_ID"), width=8),),
        make_bench(lanes=("gcp", "slurm")),
    ),
    "a variable without a shell": ((_x(8, "run {x} $NOWHERE", width=8),), make_bench(lanes=("gcp",))),
    "independent work in series": (
        (_x(3, gpu_hours=9.0, outputs=("first/{x}",)), _after(_x(3, "other {x}", gpu_hours=12.0, outputs=("o/{x}",)))),
        None,
    ),
    "independent work behind what it names not": (
        (
            _x(3, gpu_hours=9.0, outputs=("first/{x}",), width=1, min_width=1),
            _after(_x(3, "other {x}", gpu_hours=12.0), width=1, hold=True, after=()),
        ),
        None,
    ),
    "the same command in waves": (
        (
            _x(9, "run 1 {x}", gpu_hours=9.0, outputs=("one/{x}",), width=8),
            _after(_x(9, "run 2 {x}", gpu_hours=9.0, width=8)),
        ),
        None,
    ),
    "a loop that waits": (
        (_x(8, ("bash", "-c", "for i in 1 2; do run {x} & wait; done"), width=8),),
        None,
    ),
    "arms of different least width": (
        (
            phase(
                width=8,
                command=None,
                outputs=(),
                arms=(
                    Arm(name="a", command="run {model} {draw_set}"),
                    Arm(name="b", command="go {model} {draw_set}", min_width=4),
                ),
            ),
        ),
        None,
    ),
    "quota that denies": ((phase(width=8),), _limited(48.0)),
    "quota that denies below the least width": ((phase(width=8, min_width=8),), _limited(48.0)),
    "quota that denies all": (
        (phase(width=8),),
        make_bench(lanes=("gcp",), quotas=quotas({"GPUS_ALL_REGIONS": (0.0, 0.0)}, us_central1=AMPLE)),
    ),
    "quota that is not listed": (
        (phase(width=8),),
        make_bench(lanes=("gcp",), quotas=quotas(PROJECT, us_central1={"A2_CPUS": (960.0, 0.0)})),
    ),
    "a static split of unequal units": (
        (_x(4, "run {shard} {shards}", gpu_hours=None, unit_minutes=(180.0, 60.0, 180.0, 60.0), width=2),),
        None,
    ),
    "an axis that reloads last": (
        (
            phase(
                axes=axes(draw=6, model=2),
                command="run {draw} {model}",
                outputs=(),
                gpu_hours=12.0,
                width=1,
                reload_minutes=(("model", 10.0),),
            ),
        ),
        None,
    ),
    "units too long for spot": ((single(gpu_hours=3.0, spot_tolerant=True),), None),
}


def _told(name: str) -> str:
    phases, bench = CASES[name]
    verdict = judge(parsed(*phases), bench or make_bench())
    lines = [f"# {name}"]
    for found in verdict.phases[-1].findings:
        numbers = ", ".join(f"{key}={value}" for key, value in found.numbers.items())
        lines += [
            f"{found.severity.value} {found.code.value}",
            f"  {found.message}",
            f"  fix: {found.fix}",
            f"  {numbers}",
        ]
    return "\n".join(lines) + "\n"


def _blocks() -> dict[str, str]:
    parts = EXPECTED.read_text(encoding="utf-8").split("\n# ")
    blocks = [parts[0].removeprefix("# "), *parts[1:]]
    return {block.partition("\n")[0]: f"# {block.rstrip()}\n" for block in blocks}


@pytest.mark.parametrize("name", CASES)
def test_a_finding_reads_as_it_is_written_down(name: str) -> None:
    assert "\n".join(line.rstrip() for line in _told(name).splitlines()) + "\n" == _blocks()[name]


def test_every_finding_is_written_down_once_at_least() -> None:
    text = EXPECTED.read_text(encoding="utf-8")
    assert not [code for code in FindingCode if f" {code.value}\n" not in text]
    assert set(_blocks()) == set(CASES)
    assert Finding.model_fields["fix"].is_required()


if __name__ == "__main__":
    EXPECTED.write_text(
        "\n".join("\n".join(line.rstrip() for line in _told(name).splitlines()) + "\n" for name in CASES),
        encoding="utf-8",
    )
