"""Everything follows the policy: another order of lanes, other thresholds; and what no policy can change."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.fakes.benches import axes, codes, errors, finding, judged, make_bench, phase, quotas, single, words
from widelane.models.plan import Accept, Phase, Pin
from widelane.models.verdict import NEVER_ACCEPTED
from widelane.router import fence_seconds

LANES = ("gcp", "slurm.fir", "runpod")
ONE = ["flex a2-ultragpu-1g", "od a2-ultragpu-1g", "od a2-highgpu-1g"]
TWO = ["flex a2-ultragpu-2g", "od a2-ultragpu-2g"]
quick = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)

policies = st.fixed_dictionaries(
    {},
    optional={
        "lane_order": st.permutations(["gcp", "slurm", "ssh", "runpod"]),
        "short_gpu_hours": st.floats(0.0, 100.0),
        "spot_if_resumable": st.booleans(),
        "spot_mean_hours": st.floats(0.1, 100.0),
        "default_gain_minutes": st.floats(0.0, 60.0),
        "default_gain_share": st.floats(0.0, 1.0),
        "min_efficiency": st.floats(0.0, 1.0),
        "narrow_saving_share": st.floats(0.0, 1.0),
        "narrow_saving_minutes": st.floats(0.0, 60.0),
        "too_wide_ratio": st.floats(1.0, 3.0),
        "chained_hours": st.floats(0.0, 10.0),
        "axis_silence_hours": st.floats(0.0, 10.0),
        "last_resort_width": st.sampled_from(["requested", "base"]),
        "short_order": st.permutations(["SPOT", "FLEX_START", "STANDARD"]),
        "long_order": st.permutations(["FLEX_START", "STANDARD"]),
        "gpu_mem_usable_share": st.floats(0.5, 1.0),
        "fence_margin": st.floats(1.0, 3.0),
    },
)


def _asks(width: int, **fields: Any) -> Phase:
    return phase(width=width, gpu_hours=64.0, **fields)


@pytest.mark.parametrize(
    ("order", "ladder"),
    [
        (["gcp", "slurm", "runpod"], [*TWO, *ONE, "slurm.fir 2", "runpod 2"]),
        (["slurm", "gcp", "runpod"], ["slurm.fir 2", *TWO, *ONE, "runpod 2"]),
        (["runpod", "gcp", "slurm"], ["runpod 2", *TWO, *ONE, "slurm.fir 2"]),
        (["slurm", "runpod"], ["slurm.fir 2", "runpod 2"]),
        (["runpod"], ["runpod 2"]),
    ],
)
def test_lanes_are_walked_in_the_order_of_the_policy(order: list[str], ladder: list[str]) -> None:
    assert words(judged(_asks(2), make_bench({"lane_order": order}, lanes=LANES)).ladder) == ladder


def test_with_google_cloud_off_no_finding_speaks_of_it() -> None:
    off = {"lane_order": ["slurm", "runpod"]}
    bench = make_bench(off, lanes=LANES, quotas=quotas({"GPUS_ALL_REGIONS": (0.0, 0.0)}, us_central1=None))
    assert codes(judged(phase(width=8), bench)) == []
    assert words(judged(single(intent="inf-70b", width=8), bench).ladder) == ["slurm.fir 8", "runpod 8"]
    used = single(command=("bash", "-c", "run $SLURM_JOB_ID"))
    assert finding(judged(used, bench), "command_lane_env").numbers["lanes"] == "runpod"
    cpu = judged(Phase(name="cpu", intent="cpu-mid", wall_minutes=5), bench)
    assert [rung.lane for rung in cpu.ladder] == ["local"]


def test_a_policy_without_any_configured_lane_says_so() -> None:
    bench = make_bench({"lane_order": ["slurm", "runpod"]}, lanes=("gcp",))
    assert "lane_order of the policy has no configured lane" in finding(judged(_asks(2), bench), "does_not_fit").message
    pinned = _asks(2, pin=Pin(lane="gcp", reason="data"))
    assert "the pin leaves no lane" in finding(judged(pinned, make_bench(lanes=("slurm",))), "does_not_fit").message


def test_without_configured_lanes_the_first_of_the_policy_is_shown() -> None:
    assert words(judged(_asks(2), make_bench({"lane_order": ["slurm", "runpod"]})).ladder) == ["slurm 2"]


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ({"narrow_saving_share": 0.99}, "needlessly_narrow"),
        ({"narrow_saving_minutes": 9999.0}, "needlessly_narrow"),
        ({"min_efficiency": 0.99}, "needlessly_narrow"),
    ],
)
def test_thresholds_of_the_policy_decide(policy: dict[str, Any], code: str) -> None:
    assert code in errors(judged(phase(width=1)))
    assert code not in errors(judged(phase(width=1), make_bench(policy)))


def test_the_policy_says_how_long_two_chained_phases_are() -> None:
    assert "axis_undeclared" not in errors(judged(single(axes=None, why=None), make_bench({"axis_silence_hours": 3.0})))
    assert "axis_undeclared" in errors(judged(single(axes=None, why=None)))


def test_without_any_threshold_nothing_is_held_that_saves_nothing() -> None:
    bench = make_bench({"narrow_saving_share": 0.0, "narrow_saving_minutes": 0.0})
    verdict = judged(single(width=1), bench)
    assert (errors(verdict), verdict.recommended_width) == ([], 1)
    assert judged(single(width=2), bench).recommended_width == 1


@quick
@given(policies, st.sampled_from([2, 4, 8]), st.sampled_from(["capture-7b", "lora-7b", "eval", "debug"]), st.booleans())
def test_the_tail_of_a_wide_ladder_is_the_narrow_one_under_any_policy(
    policy: dict[str, Any], width: int, intent: str, spot: bool
) -> None:
    bench = make_bench({**policy, "short_gpu_hours": 0.0}, lanes=("gcp",))
    wide = judged(_asks(width, intent=intent, spot_tolerant=spot), bench)
    narrow = judged(_asks(1, intent=intent, spot_tolerant=spot), bench)
    assert [rung for rung in wide.ladder if rung.width == 1] == list(narrow.ladder)
    assert all(before.width >= after.width for before, after in pairwise(wide.ladder))


@quick
@given(
    policies,
    st.sampled_from(
        [
            single(width=8),
            phase(width=4, gpus_per_shard=3),
            single(intent="ft-70b", width=8),
            phase(width=3),
            phase(axes=axes(x=10**9), command="run {x}", outputs=(), width=8),
        ]
    ),
)
def test_no_policy_lets_what_cannot_work_be_accepted(policy: dict[str, Any], one: Phase) -> None:
    entries = tuple(Accept(code=code.value, phase=one.name, reason="I want it") for code in NEVER_ACCEPTED)
    verdict = judged(one.model_copy(update={"accept": entries}), make_bench(policy, lanes=("gcp",)))
    assert verdict.verdict == "REVISE"
    assert all(found.accepted is None for found in verdict.findings if found.code in NEVER_ACCEPTED)


@quick
@given(policies, st.permutations(["gcp", "slurm.fir", "ssh.box", "runpod"]), st.sampled_from([1, 2, 4, 8]))
def test_a_paid_lane_comes_exactly_where_the_policy_puts_it(
    policy: dict[str, Any], lanes: list[str], width: int
) -> None:
    bench = make_bench(policy, lanes=tuple(lanes))
    ladder = judged(_asks(width), bench).ladder
    assume(ladder)
    kinds = list(dict.fromkeys(rung.lane.partition(".")[0] for rung in ladder))
    assert kinds == [kind for kind in bench.policy.lane_order if kind in kinds]
    assert set(kinds) == {"gcp", "slurm", "ssh", "runpod"}


@quick
@given(policies, st.sampled_from([1, 2, 4, 8]), st.floats(0.1, 500.0))
def test_the_fence_holds_the_work_under_any_policy(policy: dict[str, Any], width: int, hours: float) -> None:
    bench = make_bench(policy)
    verdict = judged(phase(width=width, gpu_hours=round(hours, 3)), bench)
    row = next(row for row in verdict.widths if row.width == width)
    limit = bench.policy.run_limit_seconds
    seconds = fence_seconds(verdict, width, bench.policy)
    assert seconds <= limit
    assert seconds >= min(row.wall_hours * 3600, limit) - 1


@quick
@given(policies, st.integers(0, 3))
def test_the_same_facts_have_the_same_verdict_under_any_policy(policy: dict[str, Any], form: int) -> None:
    bench = make_bench(policy)
    one = phase(width=4)
    command = (
        "python gen.py --model {model} --draws {draw_set}",
        "env A=1 python gen.py --model {model} --draws {draw_set}",
    )
    other = one.model_copy(update={"name": f"n{form}", "command": command[form % 2], "justification": "sharded"})
    mine, theirs = judged(one, bench), judged(other, bench)
    assert (errors(mine), mine.ladder, mine.widths) == (errors(theirs), theirs.ladder, theirs.widths)
