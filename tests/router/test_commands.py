"""What is read from a command, and what is said about one that can't work."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.benches import axes, codes, errors, finding, judged, make_bench, phase, single
from widelane.models.plan import Arm, Phase, Pin
from widelane.router.commands import read_command
from widelane.router.placeholders import fill, names_in


@pytest.mark.parametrize(
    ("command", "launcher", "count"),
    [
        ("torchrun --nproc_per_node 4 train.py", "torchrun", 4),
        ("torchrun --nproc-per-node=4 train.py", "torchrun", 4),
        ("torchrun train.py --nproc_per_node 4", "torchrun", 1),
        ("torchrun --nproc_per_node gpu train.py", "torchrun", None),
        ("torchrun --nproc_per_node 4 -m pkg.train --nproc_per_node 2", "torchrun", 4),
        ("/opt/venv/bin/torchrun --nproc_per_node 2 train.py", "torchrun", 2),
        ("python -m torch.distributed.run --nproc_per_node 4 train.py", "torchrun", 4),
        ("python3.11 -u -m torch.distributed.launch --nproc_per_node=2 train.py", "torchrun", 2),
        ("env NCCL_DEBUG=INFO torchrun --nproc_per_node 4 train.py", "torchrun", 4),
        ("NCCL_DEBUG=INFO torchrun --nproc_per_node 4 train.py", "torchrun", 4),
        ("nohup timeout 3600 torchrun --nproc_per_node 4 train.py", "torchrun", 4),
        ("uv run torchrun --nproc_per_node 4 train.py", "torchrun", 4),
        ('bash -c "set -e; torchrun --nproc_per_node 4 train.py && echo done"', "torchrun", 4),
        (("bash", "-lc", "cd x && accelerate launch --num_processes 2 train.py"), "accelerate", 2),
        ("accelerate launch --num_processes=8 train.py", "accelerate", 8),
        ("accelerate launch train.py -n 5", "accelerate", None),
        ("accelerate config", "", None),
        ("deepspeed --num_gpus 4 train.py", "deepspeed", 4),
        ("deepspeed --include localhost:0,1,2 train.py", "deepspeed", 3),
        ("deepspeed train.py", "deepspeed", None),
        ("vllm serve m", "vllm", 1),
        ("vllm serve m --tensor-parallel-size 2 --data-parallel-size=4", "vllm", 8),
        ("vllm serve m -tp 4", "vllm", 4),
        ("python -m vllm.entrypoints.openai.api_server --tensor-parallel-size 2", "vllm", 2),
        ("env CUDA_VISIBLE_DEVICES=0,1 python train.py", "CUDA_VISIBLE_DEVICES", 2),
        ("python train.py", "", None),
        ("python train.py torchrun", "", None),
        ("python -m pkg.torchrun", "", None),
        ("bash run.sh", "", None),
        ("bash", "", None),
        ('bash -c "torchrun --nproc_per_node 4 \'open"', "", None),
        ("env CUDA_VISIBLE_DEVICES=0,1 bash -c 'python train.py'", "CUDA_VISIBLE_DEVICES", 2),
        ("bash -c 'CUDA_VISIBLE_DEVICES=0 python train.py'", "CUDA_VISIBLE_DEVICES", 1),
        ("nohup -x timeout -k 5 60 torchrun --nproc_per_node 4 t.py", "", None),
        ((), "", None),
    ],
)
def test_a_launcher_is_known_by_its_program(command: Any, launcher: str, count: int | None) -> None:
    facts = read_command(command)
    assert (facts.launcher, facts.gpus) == (launcher, count)
    assert facts.elastic is (bool(launcher) and count is None)


def test_a_placeholder_for_the_count_makes_any_command_elastic() -> None:
    assert read_command("torchrun --nproc_per_node {gpus} train.py").elastic
    assert read_command("python3 launch.py --ranks {gpus}").elastic
    assert read_command("vllm serve m --tensor-parallel-size {gpus}").gpus is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("{model}", {"model"}),
        ("out/{model}/{draw_set}.json", {"model", "draw_set"}),
        ("{{model}}", set()),
        ("{{{model}}}", {"model"}),
        ("${HOME}/x", set()),
        ('{"a": 1}', set()),
        ("{}", set()),
        ("{0}", set()),
        ("{a.b} {a[0]} {a!r} {a:>3}", set()),
        ("{_x9}", {"_x9"}),
        ("{unclosed", set()),
        ("{{a} {b}}", {"a", "b"}),
    ],
)
def test_only_a_name_in_braces_is_a_placeholder(text: str, names: set[str]) -> None:
    assert names_in([text]) == names


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("--m {model}", "--m M"),
        ("{{model}}", "{model}"),
        ("{{{model}}}", "{M}"),
        ("{{{{model}}}}", "{{model}}"),
        ("${model}", "${model}"),
        ('{"a": {"b": "{model}"}}', '{"a": {"b": "M"}}'),
        ("{gpus}", "{gpus}"),
        ("{model}{model}", "MM"),
        ("{{model}", "{M"),
        ("{ model }", "{ model }"),
        ("no braces", "no braces"),
    ],
)
def test_values_are_filled_in_and_the_rest_stays(text: str, filled: str) -> None:
    assert fill(text, {"model": "M"}) == filled


def test_a_value_is_never_read_as_a_placeholder() -> None:
    assert fill("{a} {b}", {"a": "{b}", "b": "\\1"}) == "{b} \\1"


@pytest.mark.parametrize(
    ("command", "name", "guess"),
    [
        ("python gen.py {modle} {model} {draw_set}", "modle", "Write {model}"),
        ("python gen.py {model} {draw_set} {temperature}", "temperature", "Declare temperature in `axes`"),
    ],
)
def test_a_placeholder_that_is_no_axis_is_named(command: str, name: str, guess: str) -> None:
    verdict = judged(phase(width=8, command=command))
    found = finding(verdict, "command_axes")
    assert found.numbers["name"] == name
    assert found.fix.startswith(guess)
    assert f"{{{{{name}}}}}" in found.fix


def test_braces_that_are_no_placeholders_pass() -> None:
    command = """python gen.py --model {model} --draws {draw_set} --opts '{"a": {"b": 1}}' --home ${HOME} {{literal}}"""
    assert codes(judged(phase(width=8, command=command))) == []


def test_axes_that_the_command_does_not_name_are_an_error() -> None:
    partly = finding(judged(phase(width=8, command="python gen.py {model}", outputs=())), "command_axes")
    assert partly.numbers["missing"] == "draw_set"
    none = judged(phase(width=1, command="python gen.py", outputs=()))
    assert "command_axes" in errors(none)
    wide = judged(phase(width=8, command="python gen.py", outputs=()))
    assert {"command_axes", "unsharded_wide"} <= set(errors(wide))


def test_outputs_that_units_share_are_an_error() -> None:
    outputs = ("out/{model}/{draw_set}.json", "out/{model}.log", "done")
    verdict = judged(phase(width=8, outputs=outputs))
    found = [f for f in verdict.findings if f.code == "command_axes"]
    assert [f.numbers["missing"] for f in found] == ["draw_set", "model, draw_set"]
    assert codes(judged(phase(width=8, outputs=("out/{model}-{draw_set}-*.npy", "out/{shard}.log")))) == []


def test_outputs_of_a_split_name_their_shard() -> None:
    split = {"axes": None, "command": "run {shard} {shards}", "gpu_hours": 1.0}
    assert errors(judged(phase(**split, outputs=("out.json",)))) == ["command_axes"]
    assert errors(judged(phase(**split, outputs=("out/{shard}.json",)))) == []
    assert errors(judged(phase(**split, outputs=("out/{gpus}/{shard}.json",)))) == ["command_axes"]


def test_one_unit_may_have_any_outputs() -> None:
    assert errors(judged(single(outputs=("fit.json",)))) == []
    named = phase(axes=axes(model=1), command="run {model}", outputs=("out.json",), gpu_hours=1.0)
    assert errors(judged(named)) == []


def test_merge_and_setup_know_no_axes() -> None:
    merge = finding(judged(phase(width=8, merge="python merge.py {model}")), "command_axes")
    assert "{shards}" in merge.message
    assert errors(judged(phase(width=8, merge="python merge.py --of {shards}"))) == []
    assert errors(judged(phase(width=8, setup="pip install {package}"))) == ["command_axes"]


def test_arms_are_checked_each_by_itself() -> None:
    arms = (Arm(name="a", command="run a {x}"), Arm(name="b", axes=axes(y=3), command="run b {x}"))
    verdict = judged(phase(axes=axes(x=4), command=None, outputs=(), arms=arms))
    assert [f.numbers.get("name") or f.numbers["missing"] for f in verdict.findings if f.code == "command_axes"] == [
        "x",
        "y",
    ]


def test_an_axis_without_values_has_nothing_to_run() -> None:
    verdict = judged(phase(axes=axes(model=2, draw_set=0)))
    assert "nothing to run" in finding(verdict, "command_axes").message


def test_an_open_quote_is_named() -> None:
    verdict = judged(single(command="python fit.py 'x"))
    assert "No closing quotation" in finding(verdict, "command_axes").message


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("python a.py && python b.py", "&&"),
        ("python a.py > log.txt", ">"),
        ("python a.py | tee log", "|"),
        ("python a.py 2>&1", "2>&1"),
        ("python a.py ; python b.py", ";"),
        ("SEED=1 python a.py", "SEED"),
    ],
)
def test_words_that_only_a_shell_understands_are_named(command: str, what: str) -> None:
    found = finding(judged(single(command=command)), "command_shell")
    assert what in found.message


@pytest.mark.parametrize(
    "command",
    [
        ("bash", "-c", "python a.py && python b.py > log"),
        "bash -c 'python a.py && python b.py'",
        "env SEED=1 python a.py",
        ("python", "a.py", "--op", ">"),
        "python a.py --expr a>b x=1",
    ],
)
def test_a_shell_that_is_called_by_name_may_have_them(command: Any) -> None:
    assert codes(judged(single(command=command))) == []


def test_a_cpu_phase_may_start_what_it_likes() -> None:
    one = Phase(name="serve", gpus=0, command="torchrun --nproc_per_node 4 x.py", wall_minutes=5)
    assert codes(judged(one)) == []


@pytest.mark.parametrize(
    ("command", "nodes"),
    [
        ("torchrun --nnodes 2 --nproc_per_node 4 x.py", 2),
        ("torchrun --nnodes=1:4 --nproc_per_node 4 x.py", 1),
        ("accelerate launch --num_machines 2 --num_processes 8 x.py", 2),
        ("deepspeed --num_nodes 3 --num_gpus 4 x.py", 3),
        ("torchrun --nproc_per_node 4 x.py --nnodes 2", 1),
    ],
)
def test_a_count_of_machines_is_read(command: str, nodes: int) -> None:
    assert read_command(command).nodes == nodes


def test_work_over_several_machines_waits_for_ever_on_one() -> None:
    one = single(command="torchrun --nnodes 2 --nproc_per_node 4 x.py", width=4)
    assert finding(judged(one), "bad_group").numbers["machines"] == 2


@pytest.mark.parametrize(
    ("command", "variables"),
    [
        (("bash", "-c", "python x.py $DATA ${OUT}/x"), {"DATA", "OUT"}),
        (("bash", "-c", "python x.py ${DATA:-/data} ${OUT:=o} ${A-} ${B:?no B}"), set()),
        (("bash", "-c", "DATA=/d; python x.py $DATA"), set()),
        (("bash", "-c", "export DATA=/d && python x.py $DATA"), set()),
        (("bash", "-c", "for s in 1 2; do python x.py $s; done"), set()),
        (("bash", "-c", "while read -r a; do echo $a; done"), set()),
        (("bash", "-c", "awk '{print $NF}' f; echo \\$X; echo $1 $? $$ $@"), set()),
        (("bash", "-c", "echo \"$DATA\" '$NOT'"), {"DATA"}),
        ("bash -c 'python x.py $DATA'", {"DATA"}),
        ("env DATA=1 bash -c 'python x.py $DATA'", set()),
        ("python x.py --tmp $SLURM_TMPDIR", {"SLURM_TMPDIR"}),
        ("python x.py --re '^x$END'", set()),
        (("python", "x.py", "$DATA"), set()),
        (("bash", "-c", "echo ${#DATA} ${!DATA}"), set()),
    ],
)
def test_variables_that_a_command_takes_from_outside_are_read(command: Any, variables: set[str]) -> None:
    assert read_command(command).variables == variables


def test_a_variable_that_some_lane_does_not_set_is_named_with_the_lanes() -> None:
    one = single(command=("bash", "-c", "python x.py $SLURM_TMPDIR $HOME $WIDELANE_WIDTH"))
    lanes = make_bench(lanes=("gcp", "slurm.fir", "runpod"))
    found = finding(judged(one, lanes), "command_lane_env")
    assert (found.numbers["variable"], found.numbers["lanes"]) == ("SLURM_TMPDIR", "gcp, runpod")
    assert "${SLURM_TMPDIR:-value}" in found.fix
    assert errors(judged(one, make_bench(lanes=("slurm.fir",)))) == []
    pinned = one.model_copy(update={"pin": Pin(lane="slurm", reason="its scratch")})
    assert errors(judged(pinned, lanes)) == []


@pytest.mark.parametrize(
    "fields", [{"env": (("DATA", "/d"),)}, {"secrets": ("DATA",)}, {"command": ("bash", "-c", "echo ${DATA:-x}")}]
)
def test_a_variable_that_the_plan_sets_is_set_everywhere(fields: dict[str, Any]) -> None:
    given: dict[str, Any] = {"command": ("bash", "-c", "echo $DATA")}
    assert errors(judged(single(**{**given, **fields}))) == []
    assert errors(judged(single(**given))) == ["command_lane_env"]


def test_setup_and_merge_and_cpu_work_are_read_too() -> None:
    assert errors(judged(phase(width=8, setup=("bash", "-c", "pip install $X")))) == ["command_lane_env"]
    assert errors(judged(phase(width=8, merge=("bash", "-c", "merge $X")))) == ["command_lane_env"]
    local = Phase(name="judge", gpus=0, command=("bash", "-c", "judge $X"), wall_minutes=5)
    assert finding(judged(local), "command_lane_env").numbers["lanes"] == "local"
    cpu = Phase(name="fit", intent="cpu-mid", command=("bash", "-c", "fit $X"), wall_minutes=5)
    assert finding(judged(cpu), "command_lane_env").numbers["lanes"] == "gcp"
