"""What a scenario may say, and what it is told when it says something else."""

from __future__ import annotations

import pytest

from tests.fakes.simworld import ATLAS, CASES
from widelane.errors import ScenarioError
from widelane.models.plan import ProvisioningModel
from widelane.simcloud.scenario import Combination, Fault, FaultKind, Method, PreemptRule, Scenario
from widelane.simcloud.scenario_file import parse, parse_fault, read


def told(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as raised:
        parse(text, "s.yaml", ATLAS, CASES)
    return raised.value.message.split("\n")


def test_an_empty_scenario_is_a_cloud_without_stock():
    assert parse("", "s.yaml", ATLAS, CASES) == Scenario()


def test_everything_that_can_be_said_is_read():
    scenario = parse(
        """
project: rehearsal
clock: {rate: 120}
boot_seconds: 7
operation_seconds: 1.5
preempt_grace_seconds: 10
stock:
  - {zone: [us-central1-a, us-central1-c], machine_type: a2-ultragpu-8g, model: FLEX_START, count: 2}
  - {zone: "*", machine_type: "*", model: "*", count: 0, then: pending, arrives_after_seconds: 30}
quotas: {us-central1: {PREEMPTIBLE_NVIDIA_A100_80GB_GPUS: 16}}
global_quotas: {GPUS_ALL_REGIONS: 64}
faults:
  - {on: insert, nth: 2, times: 3, do: lose_answer, seconds: 4, zone: us-central1-a, machine_type: a2-ultragpu-8g}
  - {on: insert, do: answer, case: perm_instances_create}
preempt: [{machine_type: a2-ultragpu-1g, after_seconds: 90, times: 1}]
visible_gpus: {a2-ultragpu-4g: 3}
secrets: {HF_TOKEN: abc}
""",
        "s.yaml",
        ATLAS,
        CASES,
    )
    assert scenario.secrets == {"HF_TOKEN": "abc"}
    assert (scenario.project, scenario.rate, scenario.boot, scenario.operation, scenario.grace) == (
        "rehearsal",
        120.0,
        7.0,
        1.5,
        10.0,
    )
    assert [(rule.zone, rule.count) for rule in scenario.stock] == [
        ("us-central1-a", 2),
        ("us-central1-c", 2),
        ("*", 0),
    ]
    wanted = Combination("us-east4-c", "a2-ultragpu-1g", ProvisioningModel.FLEX_START)
    assert (scenario.rule_for(wanted).pending, scenario.rule_for(wanted).arrives_after) == (True, 30.0)
    assert scenario.quotas == {"us-central1": {"PREEMPTIBLE_NVIDIA_A100_80GB_GPUS": 16.0}}
    assert scenario.global_quotas == {"GPUS_ALL_REGIONS": 64.0}
    assert scenario.faults[0] == Fault(
        Method.INSERT, FaultKind.LOSE_ANSWER, 2, 3, "us-central1-a", "a2-ultragpu-8g", 4.0
    )
    assert scenario.faults[1].case == "perm_instances_create"
    assert scenario.preempt == (PreemptRule("a2-ultragpu-1g", 90.0, 1),)
    assert scenario.visible_gpus == {"a2-ultragpu-4g": 3}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("stock: [{count: -1}]", "s.yaml:1:17: count is -1 Fix: give 0 or more"),
        ("stock:\n  - {count: x}", "s.yaml:2:13: count must be a number, not 'x'"),
        ("stock: [{count: 1.5}]", "s.yaml:1:17: count must be a whole number, not 1.5"),
        ("stock: [{zone: us-central1-a}]", "s.yaml:1:9: a stock rule needs a count Fix: add count: 0 or more"),
        ("stock: {count: 1}", "s.yaml:1:8: stock must be a list, not a map"),
        ("stok: []", "s.yaml:1:1: unknown key 'stok' in the scenario Fix: did you mean 'stock'?"),
        ("clock: {rate: 0}", "s.yaml:1:15: rate is 0 Fix: give 0.001 or more"),
        ("clock: 60", "s.yaml:1:8: clock must be a map, not '60'"),
        ("boot_seconds: '5'", "s.yaml:1:15: boot_seconds must be a number, not '5'"),
        (
            "stock: [{machine_type: a2-ultragpu-9g, count: 1}]",
            "s.yaml:1:24: unknown machine type 'a2-ultragpu-9g' Fix: did you mean 'a2-ultragpu-8g'?",
        ),
        (
            "stock: [{zone: us-centrall-c, count: 1}]",
            "s.yaml:1:16: unknown zone 'us-centrall-c' Fix: did you mean 'us-central1-c'?",
        ),
        (
            "stock: [{model: FLEXSTART, count: 1}]",
            "s.yaml:1:17: unknown model 'FLEXSTART' Fix: did you mean 'FLEX_START'?",
        ),
        (
            "stock: [{model: STANDARD, machine_type: a3-highgpu-1g, count: 1}]",
            "s.yaml:1:9: a3-highgpu-1g can't be had as STANDARD Fix: it allows FLEX_START, SPOT",
        ),
        (
            "stock: [{count: 0, arrives_after_seconds: 9}]",
            "s.yaml:1:43: arrives_after_seconds needs then: pending Fix: add then: pending",
        ),
        (
            "quotas: {us-central1: {PREEMPTIBLE_NVIDIA_A100_80_GPUS: 1}}",
            (
                "s.yaml:1:24: unknown key 'PREEMPTIBLE_NVIDIA_A100_80_GPUS' in the quotas"
                " Fix: did you mean 'PREEMPTIBLE_NVIDIA_A100_80GB_GPUS'?"
            ),
        ),
        ("faults: [{on: insert}]", "s.yaml:1:10: a fault needs 'do' Fix: add do"),
        (
            "faults: [{on: get, do: answer, case: quota_a2_cpus}]",
            "s.yaml:1:38: quota_a2_cpus is the end of an operation Fix: use it with on: insert",
        ),
        (
            "faults: [{on: get, do: answer}]",
            "s.yaml:1:10: do: answer needs a case of the error table Fix: add case: NAME",
        ),
        ("preempt: [{machine_type: '*'}]", "s.yaml:1:11: a preemption needs 'after_seconds' Fix: add after_seconds"),
        (
            "boot_seconds: 1\nboot_seconds: 2",
            "s.yaml:2:1: key 'boot_seconds' stands twice in the scenario Fix: remove one",
        ),
        ("- 1", "s.yaml:1:1: the scenario must be a map, not a list"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_fix(text, line):
    assert told(text) == [line]


def test_a_machine_type_where_it_is_not_offered_is_a_mistake():
    (line,) = told("stock: [{zone: us-central1-f, machine_type: a2-ultragpu-8g, count: 1}]")
    assert line.startswith("s.yaml:1:9: a2-ultragpu-8g isn't offered in us-central1-f Fix: it is in ")


def test_all_mistakes_are_told_at_once_in_the_order_of_the_text():
    lines = told("clock: {rate: fast}\nstock:\n  - {count: -1, zone: nowhere}\nfautls: []")
    assert [line.split(":")[1] for line in lines] == ["1", "3", "3", "4"]


def test_what_is_not_yaml_is_told_with_its_place():
    (line,) = told("stock: [\n")
    assert line.startswith("s.yaml:2:1: this isn't YAML: ")


def test_a_file_that_is_not_text_is_told(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="can't be read as text"):
        read(path, ATLAS, CASES)
    with pytest.raises(ScenarioError, match="can't be read"):
        read(tmp_path / "absent.yaml", ATLAS, CASES)


def test_one_fault_can_be_given_as_json():
    assert parse_fault('{"on": "get", "do": "http_503"}', ATLAS, CASES) == Fault(Method.GET, FaultKind.HTTP_503)
    with pytest.raises(ScenarioError, match="did you mean 'http_503'"):
        parse_fault('{"on": "get", "do": "http_530"}', ATLAS, CASES)
