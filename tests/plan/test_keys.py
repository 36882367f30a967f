"""What each key is read as."""

from __future__ import annotations

import pytest

from tests.plan.conftest import ReadPhase
from widelane import plan
from widelane.models.plan import (
    Accept,
    Arm,
    Axis,
    NarrowBecause,
    NarrowKind,
    Needs,
    Phase,
    Pin,
    Plan,
    ProvisioningModel,
    Source,
)
from widelane.plan.keys import ARM, NARROW_BECAUSE, NEEDS, PHASE, PIN, PLAN
from widelane.plan.records import Record

WHOLE = """
widelane: 1
task: "1121"
source: {path: .}
store: file:///srv/store
env: {HF_HOME: /scratch/hf, MODE: 'on'}
accept:
  - {code: needlessly_narrow, phase: judge, reason: one card is enough}
phases:
  - name: generate
    intent: capture-7b
    axes: {model: [a, 007, "on", 1e-3], draw_set: 10}
    gpu_hours: 8
    setup_minutes: 8
    tail_minutes: 2.5
    checkpoint_minutes: 15
    width: 8
    min_width: 2
    gpus_per_shard: 1
    needs: {gpu_mem_gib: 38, ram_gib: 64, disk_gib: 300}
    setup: pip install -r requirements.txt
    command: python gen.py --model {model} --draws {draw_set}
    outputs: ["out/{model}/{draw_set}.json"]
    merge: [python, merge.py, out/]
    merge_outputs: [merged.json]
    resumable: false
    spot_tolerant: true
    time_limit_hours: 12
    pin: {lane: gcp, model: flex_start, zone: us-central1-a, reason: the data is there}
    justification: as in the last run
    accept: [{code: too_wide, reason: warm spares}]
    image: pytorch-2-8
    env: {MODE: "off", SEED: 3}
    secrets: [HF_TOKEN]
    workdir: experiments/one
    inputs: [data/prompts.jsonl]
  - name: judge
    gpus: 0
    after: [generate]
    wall_minutes: 40
    hold: true
    source: none
  - name: sweep
    intent: lora-7b
    axes: {seed: 3}
    unit_minutes: [10, 20, 30.5]
    narrow_because: {kind: rate_limited, calls: 50000, calls_per_minute: 500}
    arms:
      - {name: small, axes: {seed: 2}, command: "python s.py {seed}", min_width: 1, gpus_per_shard: 1, unit_minutes: 3}
      - {name: large, axes: none, command: [python, l.py, ""], outputs: [l.json], gpu_hours: 4}
    store: gs://bucket/prefix
    source: {git: "https://example.org/r.git", rev: 0123456789012345678901234567890123456789}
"""


def _phase(name: str) -> Phase:
    return next(phase for phase in plan.parse(WHOLE).plan.phases if phase.name == name)


def test_every_key_of_a_phase_is_read():
    assert _phase("generate") == Phase(
        name="generate",
        intent="capture-7b",
        axes=(Axis(name="model", size=4, values=("a", "007", "on", "1e-3")), Axis(name="draw_set", size=10)),
        gpu_hours=8,
        setup_minutes=8,
        tail_minutes=2.5,
        checkpoint_minutes=15,
        width=8,
        min_width=2,
        gpus_per_shard=1,
        needs=Needs(gpu_mem_gib=38, ram_gib=64, disk_gib=300),
        setup="pip install -r requirements.txt",
        command="python gen.py --model {model} --draws {draw_set}",
        outputs=("out/{model}/{draw_set}.json",),
        merge=("python", "merge.py", "out/"),
        merge_outputs=("merged.json",),
        resumable=False,
        spot_tolerant=True,
        time_limit_hours=12,
        pin=Pin(
            reason="the data is there",
            lane="gcp",
            provisioning_model=ProvisioningModel.FLEX_START,
            zone="us-central1-a",
        ),
        justification="as in the last run",
        accept=(Accept(code="too_wide", phase="generate", reason="warm spares"),),
        image="pytorch-2-8",
        source=Source(path="."),
        store="file:///srv/store",
        env=(("HF_HOME", "/scratch/hf"), ("MODE", "off"), ("SEED", "3")),
        secrets=("HF_TOKEN",),
        workdir="experiments/one",
        inputs=("data/prompts.jsonl",),
    )


def test_a_phase_without_gpu_takes_what_the_plan_sets_and_can_refuse_it():
    judge = _phase("judge")
    assert (judge.gpus, judge.after, judge.wall_minutes, judge.hold) == (0, ("generate",), 40, True)
    assert judge.source is None
    assert judge.env == (("HF_HOME", "/scratch/hf"), ("MODE", "on"))


def test_arms_waivers_and_revisions_are_read():
    sweep = _phase("sweep")
    assert sweep.unit_minutes == (10, 20, 30.5)
    assert sweep.narrow_because == NarrowBecause(kind=NarrowKind.RATE_LIMITED, calls=50000, calls_per_minute=500)
    assert sweep.arms == (
        Arm(
            name="small",
            axes=(Axis(name="seed", size=2),),
            command="python s.py {seed}",
            min_width=1,
            gpus_per_shard=1,
            unit_minutes=3,
        ),
        Arm(name="large", axes=(), command=("python", "l.py", ""), outputs=("l.json",), gpu_hours=4),
    )
    assert sweep.store == "gs://bucket/prefix"
    assert sweep.source == Source(git="https://example.org/r.git", rev="0123456789012345678901234567890123456789")


def test_the_plan_itself_is_read():
    parsed = plan.parse(WHOLE, folder="somewhere")
    assert (parsed.plan.widelane, parsed.plan.task, parsed.folder) == (1, "1121", "somewhere")
    assert parsed.plan.accept == (Accept(code="needlessly_narrow", phase="judge", reason="one card is enough"),)


def test_what_was_read_can_be_written_as_json_and_read_back():
    parsed = plan.parse(WHOLE)
    assert Plan.model_validate(parsed.as_json()) == parsed.plan


def test_every_field_of_the_models_has_a_key():
    def fields(record: Record) -> set[str]:
        return {key.field or name for name, key in record.keys.items()}

    assert fields(PHASE) == set(Phase.model_fields)
    assert fields(PLAN) == set(Plan.model_fields) | {"source", "store", "env"}
    for record, model in ((NEEDS, Needs), (PIN, Pin), (NARROW_BECAUSE, NarrowBecause), (ARM, Arm)):
        assert fields(record) == set(model.model_fields)


def test_a_size_of_a_thousand_million_is_not_enumerated(read_phase: ReadPhase):
    phase = read_phase("axes: {a: 1000000000, b: 1000000000, c: 1000000000}")
    assert [axis.size for axis in phase.axes or ()] == [10**9] * 3
    assert all(axis.values is None for axis in phase.axes or ())


def test_no_axes_and_axes_none_are_told_apart(read_phase: ReadPhase):
    assert read_phase("width: 1").axes is None
    assert read_phase("axes: none\nwhy: each step needs the one before").axes == ()


def test_a_phase_without_command_or_estimate_is_read():
    assert plan.parse("widelane: 1\nphases: [{name: bare}]").plan.phases == (Phase(name="bare"),)


def test_json_is_read_too():
    parsed = plan.parse('{"widelane": 1, "phases": [{"name": "a", "width": 8, "command": ["x", "\\u00e9\\n"]}]}')
    assert parsed.plan.phases[0] == Phase(name="a", width=8, command=("x", "é\n"))


def test_an_alias_stands_for_its_value():
    parsed = plan.parse("widelane: 1\nphases:\n- {name: a, needs: &n {ram_gib: 64}}\n- {name: b, needs: *n}\n")
    assert [phase.needs.ram_gib for phase in parsed.plan.phases] == [64, 64]


def test_lines_continued_by_a_backslash_are_one_command(read_phase: ReadPhase):
    phase = read_phase("command: |\n  python run.py \\\n    --name 'a b' \\\n    --last")
    assert phase.command == "python run.py   --name 'a b'   --last\n"


def test_lines_inside_quotes_stay_lines(read_phase: ReadPhase):
    assert read_phase("command: |\n  bash -c 'one\n  two | three'").command == "bash -c 'one\ntwo | three'\n"


@pytest.mark.parametrize(
    ("word", "model"),
    [
        ("spot", ProvisioningModel.SPOT),
        ("SPOT", ProvisioningModel.SPOT),
        ("flex-start", ProvisioningModel.FLEX_START),
        ("FLEX_START", ProvisioningModel.FLEX_START),
        ("on-demand", ProvisioningModel.STANDARD),
        ("standard", ProvisioningModel.STANDARD),
    ],
)
def test_a_provisioning_model_is_known_by_its_usual_spellings(
    word: str, model: ProvisioningModel, read_phase: ReadPhase
):
    pin = read_phase(f"pin: {{model: {word}, reason: habit}}").pin
    assert pin is not None
    assert pin.provisioning_model is model
