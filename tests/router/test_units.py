"""Units, their digests, the merge, and the key of a dispatch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.benches import axes, judged, phase, single
from widelane.errors import InputError
from widelane.models.plan import Arm, Axis, Phase
from widelane.router import UnitSalt, dispatch_key, make_units, static_shards

SALT = UnitSalt(source_digest="s", input_digests=("i",), generation="")
SPLIT: dict[str, Any] = {"axes": None, "command": "run {shard} {shards}", "outputs": ("out/{shard}.json",)}


def _digests(one: Phase, salt: UnitSalt = SALT, shards: int | None = None) -> list[str]:
    return [unit.digest for unit in make_units(one, shards, salt).units]


def test_there_is_one_unit_per_combination_and_the_last_axis_varies_fastest() -> None:
    units = make_units(phase(), None, SALT).units
    assert len(units) == 20
    assert units[0].argv == ("python", "gen.py", "--model", "0", "--draws", "0")
    assert units[11].axes == (("model", "1"), ("draw_set", "1"))
    assert units[11].outputs == ("out/1/1.json",)
    assert [unit.index for unit in units] == list(range(20))
    assert len({unit.digest for unit in units}) == 20
    assert {unit.gpus for unit in units} == {1}


def test_values_keep_their_spelling() -> None:
    axis = Axis(name="lr", size=2, values=("1e-3", "on"))
    units = make_units(phase(axes=(axis,), command="run {lr}", outputs=()), None, SALT).units
    assert [unit.argv for unit in units] == [("run", "1e-3"), ("run", "on")]


def test_the_form_that_a_host_reads_has_exactly_these_keys() -> None:
    unit = make_units(phase(), None, SALT).units[3]
    body = json.loads(json.dumps(unit.as_json()))
    assert body == {
        "index": 3,
        "digest": unit.digest,
        "argv": ["python", "gen.py", "--model", "0", "--draws", "3"],
        "axes": {"model": "0", "draw_set": "3"},
        "arm": "",
        "gpus": 1,
        "outputs": ["out/0/3.json"],
        "env": {},
    }


def test_a_digest_does_not_depend_on_width_but_on_everything_that_the_result_does() -> None:
    base = _digests(phase())
    for other in (
        phase(width=8),
        phase(width=1, min_width=1, setup_minutes=1.0, gpu_hours=99.0),
        phase(name="again", intent="lora-7b", merge="m", spot_tolerant=True),
    ):
        assert _digests(other) == base
    for other in (
        phase(command="python gen.py --model {model} --draws {draw_set} --fast"),
        phase(workdir="sub"),
        phase(env=(("A", "1"),)),
        phase(outputs=("o/{model}/{draw_set}.json",)),
    ):
        assert not set(_digests(other)) & set(base)
    for salt in (
        UnitSalt("other", ("i",), ""),
        UnitSalt("s", ("j",), ""),
        UnitSalt("s", (), ""),
        UnitSalt("s", ("i",), "2"),
    ):
        assert not set(_digests(phase(), salt)) & set(base)


def test_the_same_words_in_another_form_are_the_same_units() -> None:
    words = ("python", "gen.py", "--model", "{model}", "--draws", "{draw_set}")
    assert _digests(phase(command=words)) == _digests(phase())
    assert _digests(phase(command="python  gen.py --model '{model}' --draws {draw_set}")) == _digests(phase())


def test_adding_a_value_to_an_axis_keeps_the_units_that_were_there() -> None:
    small = phase(axes=axes(x=3), command="run {x}", outputs=())
    large = phase(axes=axes(x=4), command="run {x}", outputs=())
    assert _digests(large)[:3] == _digests(small)


def test_a_static_split_has_as_many_units_as_shards() -> None:
    one = phase(**SPLIT)
    assert static_shards(one)
    assert not static_shards(phase())
    units = make_units(one, 4, SALT).units
    assert [unit.argv for unit in units] == [("run", str(i), "4") for i in range(4)]
    assert units[3].outputs == ("out/3.json",)
    assert not set(_digests(one, shards=4)) & set(_digests(one, shards=8))


def test_shards_that_read_their_number_from_the_environment_are_different_units() -> None:
    one = phase(axes=None, command="run --of {shards}", outputs=())
    assert len(set(_digests(one, shards=4))) == 4


def test_a_split_waits_for_its_number() -> None:
    with pytest.raises(InputError, match="isn't fixed yet"):
        make_units(phase(**SPLIT), None, SALT)


def test_a_phase_without_a_command_has_nothing_to_run() -> None:
    with pytest.raises(InputError, match="generate has no command"):
        make_units(phase(command=None), None, SALT)


def test_a_launcher_is_one_unit_on_every_gpu_and_its_count_stays_open() -> None:
    units = make_units(single(command="torchrun --nproc_per_node {gpus} x.py"), None, SALT).units
    assert [(unit.argv, unit.gpus) for unit in units] == [(("torchrun", "--nproc_per_node", "{gpus}", "x.py"), "all")]
    spread = phase(axes=axes(row=600), command="python3 launch.py --ranks {gpus}", outputs=())
    assert [unit.gpus for unit in make_units(spread, None, SALT).units] == ["all"]


def test_a_unit_gets_its_group() -> None:
    declared = phase(command="torchrun --nproc_per_node {gpus} x.py {model} {draw_set}", gpus_per_shard=2)
    assert {unit.gpus for unit in make_units(declared, None, SALT).units} == {2}
    fixed = make_units(single(command="torchrun --nproc_per_node 4 x.py"), None, SALT).units
    assert fixed[0].gpus == 4
    ft = single(intent="ft-7b")
    assert make_units(ft, None, SALT, group=judged(ft).gpus_per_shard).units[0].gpus == 4
    cpu = Phase(name="judge", gpus=0, command="python judge.py")
    assert make_units(cpu, None, SALT).units[0].gpus == 0


def test_nothing_that_shards_is_one_unit() -> None:
    units = make_units(single(), None, SALT).units
    assert [(unit.argv, unit.axes, unit.gpus) for unit in units] == [(("python", "fit.py"), (), 1)]


def test_axes_of_one_value_are_filled_in_everywhere() -> None:
    one = Axis(name="model", size=1, values=("base",))
    for command in ("run {model}", "torchrun --nproc_per_node {gpus} {model}", "run {model} {shard} {shards}"):
        units = make_units(phase(axes=(one,), command=command, outputs=("{model}.json",)), 1, SALT).units
        assert [unit.outputs for unit in units] == [("base.json",)]
        assert "base" in units[0].argv


def test_arms_have_their_own_units_in_their_order() -> None:
    arms = (
        Arm(name="small", axes=axes(x=2), command="run s {x}", outputs=("s/{x}",)),
        Arm(name="large", command="run l {x}", gpus_per_shard=2),
    )
    units = make_units(phase(axes=axes(x=3), command=None, outputs=("o/{x}",), arms=arms), None, SALT).units
    assert [(unit.index, unit.arm, unit.gpus, unit.outputs) for unit in units] == [
        (0, "small", 1, ("s/0",)),
        (1, "small", 1, ("s/1",)),
        (2, "large", 2, ("o/0",)),
        (3, "large", 2, ("o/1",)),
        (4, "large", 2, ("o/2",)),
    ]


def test_equal_commands_of_two_arms_are_two_units() -> None:
    arms = (Arm(name="a", command="run"), Arm(name="b", command="run"))
    digests = _digests(phase(axes=None, command=None, outputs=(), arms=arms))
    assert len(set(digests)) == 2


def test_the_merge_is_of_its_units() -> None:
    one = phase(merge="python merge.py out/ {shards}", merge_outputs=("all.json",))
    merge = make_units(one, None, SALT).merge
    assert merge is not None
    assert (merge.argv, merge.outputs, merge.gpus) == (("python", "merge.py", "out/", "20"), ("all.json",), 0)
    digests = {merge.digest}
    for other in (
        phase(merge="python merge.py out/ {shards} -v", merge_outputs=("all.json",)),
        phase(merge="python merge.py out/ {shards}", merge_outputs=("some.json",)),
        phase(merge="python merge.py out/ {shards}", merge_outputs=("all.json",), env=(("A", "1"),)),
    ):
        found = make_units(other, None, SALT).merge
        assert found is not None
        digests.add(found.digest)
    assert len(digests) == 4
    assert make_units(phase(), None, SALT).merge is None


def test_setup_is_split_into_words() -> None:
    assert make_units(phase(setup="pip install -r 'a b.txt'"), None, SALT).setup == ("pip", "install", "-r", "a b.txt")
    assert make_units(phase(), None, SALT).setup is None


def test_a_dispatch_is_known_by_its_work_and_its_width_bounds() -> None:
    units = make_units(phase(), None, SALT)
    key = dispatch_key(units, "generate", 1, 8)
    assert key == dispatch_key(make_units(phase(), None, SALT), "generate", 1, 8)
    others = {
        dispatch_key(units, "judge", 1, 8),
        dispatch_key(units, "generate", 2, 8),
        dispatch_key(units, "generate", 1, 4),
        dispatch_key(make_units(phase(merge="m"), None, SALT), "generate", 1, 8),
        dispatch_key(make_units(phase(workdir="w"), None, SALT), "generate", 1, 8),
    }
    assert len(others | {key}) == 6


def test_literal_braces_reach_the_program() -> None:
    one = single(command=("run", '{"a": {"b": 1}}', "{{name}}", "${HOME}", "{}"))
    assert make_units(one, None, SALT).units[0].argv == ("run", '{"a": {"b": 1}}', "{name}", "${HOME}", "{}")
