"""What holds for every plan, policy and quota."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.fakes.benches import AMPLE, PROJECT, axes, errors, judged, make_bench, parsed, phase, quotas, words
from widelane.models.plan import Axis, NarrowBecause, NarrowKind, Needs, Phase, Pin, ProvisioningModel
from widelane.models.quota import QuotaSnapshot
from widelane.models.verdict import PhaseVerdict
from widelane.router import Bench, judge

BENCH = make_bench()
GPU_INTENTS = ("debug", "eval", "capture-7b", "lora-7b", "ft-7b", "sweep-8g-a100", "sweep-8g-h100")
WIDTH_CODES = {"unsharded_wide", "needlessly_narrow", "too_wide", "bad_group", "off_ladder", "quota_denies"}
COMMANDS = {
    "units": "run {x}",
    "split": "run {shard} {shards}",
    "launcher": "torchrun --nproc_per_node {gpus} x.py",
    "single": "run",
    "fixed": "torchrun --nproc_per_node 2 x.py",
}

quick = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
ANY_WIDTH = st.sampled_from([None, 1, 2, 4, 8])
hours = st.floats(0.01, 2000.0).map(lambda value: round(value, 3))
minutes = st.one_of(st.just(0.0), st.floats(0.1, 300.0).map(lambda value: round(value, 1)))


@st.composite
def phases(draw: st.DrawFn, /, *, widths: Any = ANY_WIDTH, **fixed: Any) -> Phase:
    """A phase that a plan could have; not every one of them is wise."""
    shape = draw(st.sampled_from(sorted(COMMANDS)))
    fields: dict[str, Any] = {
        "intent": draw(st.sampled_from(GPU_INTENTS)),
        "axes": axes(x=draw(st.integers(1, 200))) if shape == "units" else None,
        "command": COMMANDS[shape],
        "outputs": (),
        "gpu_hours": draw(hours),
        "setup_minutes": draw(minutes),
        "tail_minutes": draw(minutes),
        "width": draw(widths),
        "min_width": draw(st.sampled_from([None, None, 1, 2, 4, 8])),
        "gpus_per_shard": draw(st.sampled_from([None, None, 1, 2, 4, 8])),
        "spot_tolerant": draw(st.booleans()),
        "needs": draw(st.sampled_from([Needs(), Needs(gpu_mem_gib=50.0), Needs(ram_gib=300.0)])),
        "narrow_because": draw(
            st.sampled_from(
                [
                    None,
                    None,
                    NarrowBecause(kind=NarrowKind.LICENCE_SEATS, seats=3),
                    NarrowBecause(kind=NarrowKind.RATE_LIMITED, calls=600.0, calls_per_minute=10.0),
                ]
            )
        ),
        **fixed,
    }
    least, width = fields["min_width"], fields["width"]
    if least is not None and width is not None and least > width:
        fields["min_width"] = width
    return phase(**fields)


@st.composite
def snapshots(draw: st.DrawFn) -> QuotaSnapshot:
    limits = st.sampled_from([0.0, 1.0, 2.0, 4.0, 8.0, 12.0, 24.0, 48.0, 96.0, 1e6, 9.22337e18])
    listed = {name: (draw(limits), 0.0) for name in draw(st.sets(st.sampled_from(sorted(AMPLE))))}
    project = draw(st.sampled_from([None, {"GPUS_ALL_REGIONS": (4.0, 0.0)}, PROJECT]))
    return quotas(project, us_central1=listed)


policies = st.fixed_dictionaries(
    {},
    optional={
        "lane_order": st.permutations(["gcp", "slurm", "ssh", "runpod"]),
        "short_gpu_hours": st.floats(0.0, 100.0),
        "spot_if_resumable": st.booleans(),
        "default_gain_minutes": st.floats(0.0, 60.0),
        "default_gain_share": st.floats(0.0, 1.0),
        "min_efficiency": st.floats(0.0, 1.0),
        "narrow_saving_share": st.floats(0.0, 1.0),
        "narrow_saving_minutes": st.floats(0.0, 60.0),
        "too_wide_ratio": st.floats(1.0, 3.0),
        "last_resort_width": st.sampled_from(["requested", "base"]),
        "short_order": st.permutations(["SPOT", "FLEX_START", "STANDARD"]),
        "long_order": st.permutations(["FLEX_START", "STANDARD"]),
        "widths": st.sampled_from([[8, 4, 2, 1], [8, 1], [4, 2, 1], [8, 4]]),
        "run_limit_seconds": st.integers(600, 604800),
    },
)


def _width_can_mend(one: Phase, verdict: PhaseVerdict) -> bool:
    """Whether the phase fits some machine, its counts agree, and none of its machines is wider than the work."""
    denied = [f for f in verdict.findings if f.code == "quota_denies"]
    if denied and (one.min_width or 0) > int(denied[0].numbers["largest"]):
        return False
    if denied and not denied[0].numbers["largest"]:
        return False
    if not verdict.ladder or (one.command == COMMANDS["fixed"] and one.gpus_per_shard not in (None, 2)):
        return False
    usable = 1 if one.command == COMMANDS["single"] or (one.axes and one.axes[0].size == 1) else 8
    usable = 2 if one.command == COMMANDS["fixed"] else usable
    return verdict.recommended_width <= max(usable, verdict.gpus_per_shard)


@quick
@given(phases(), policies, st.permutations(["gcp", "slurm", "ssh.box", "runpod"]), st.integers(0, 4))
def test_within_a_lane_width_never_rises_and_never_falls_below_the_least(
    one: Phase, policy: dict[str, Any], lanes: list[str], count: int
) -> None:
    bench = make_bench(policy, lanes=tuple(lanes[:count]))
    verdict = judged(one, bench)
    ladder = verdict.ladder
    for before, after in pairwise(ladder):
        if before.lane == after.lane:
            assert before.width >= after.width
    own = [rung for rung in ladder if rung.lane == "gcp"]
    assert all(verdict.min_width <= rung.width <= verdict.requested_width for rung in own)
    order = [bench.policy.lane_order.index(rung.lane.partition(".")[0]) for rung in ladder]
    assert order == sorted(order)
    assert all(rung.width % verdict.gpus_per_shard == 0 for rung in own)


@quick
@given(phases(widths=st.sampled_from([2, 4, 8]), min_width=None, gpus_per_shard=1, narrow_because=None))
def test_the_tail_of_a_wide_ladder_is_the_ladder_of_the_base_width(wide: Phase) -> None:
    intent = BENCH.intents[wide.intent or ""]
    assume(intent.base_gpus <= (wide.width or 0) and intent.floor == intent.base_gpus)
    # Length is decided once, at the requested width: compare ladders of the same length, within the run limit.
    wide = wide.model_copy(update={"gpu_hours": 100.0, "setup_minutes": 0.0, "tail_minutes": 0.0})
    tail = [rung for rung in judged(wide).ladder if rung.width == intent.base_gpus]
    narrow = judged(wide.model_copy(update={"width": intent.base_gpus}))
    assert list(narrow.ladder) == tail


@quick
@given(phases(), st.one_of(st.none(), snapshots()), policies)
def test_asking_for_the_recommended_width_leaves_no_finding_about_width(
    one: Phase, snapshot: QuotaSnapshot | None, policy: dict[str, Any]
) -> None:
    bench = make_bench(policy, quotas=snapshot)
    first = judged(one, bench)
    assume(_width_can_mend(one, first))
    asked = one.model_copy(update={"width": first.recommended_width, "min_width": None})
    if one.min_width is not None and one.min_width <= first.recommended_width:
        asked = asked.model_copy(update={"min_width": one.min_width})
    second = judged(asked, bench)
    assert second.recommended_width == first.recommended_width
    assert not WIDTH_CODES & set(errors(second))


@quick
@given(phases(widths=st.none()))
def test_the_width_that_is_requested_unasked_has_no_finding_about_width(one: Phase) -> None:
    verdict = judged(one)
    assume(_width_can_mend(one, verdict))
    assert verdict.requested_width == verdict.recommended_width
    assert not WIDTH_CODES & set(errors(verdict))


@quick
@given(phases(), snapshots(), st.data())
def test_more_quota_never_costs_time(one: Phase, less: QuotaSnapshot, data: st.DataObject) -> None:
    region = less.regions[0]
    raised = tuple(
        metric.model_copy(update={"limit": metric.limit + data.draw(st.sampled_from([0.0, 0.0, 8.0, 96.0]))})
        if metric.limit > 0
        else metric
        for metric in region.metrics or ()
    )
    more = less.model_copy(update={"regions": (region.model_copy(update={"metrics": raised}),)})
    before = judged(one, make_bench(quotas=less))
    after = judged(one, make_bench(quotas=more))
    # Narrower only where the narrower width was denied before, and is nearly as fast.
    if after.recommended_width < before.recommended_width:
        hours = {row.width: row.wall_hours for row in after.widths}
        ratio = BENCH.policy.too_wide_ratio
        assert hours[after.recommended_width] <= hours[before.recommended_width] * ratio + 1e-3
    admitted = {(r.machine_type, r.provisioning_model) for r in before.ladder if r.admits == "yes"}
    assert admitted <= {(r.machine_type, r.provisioning_model) for r in after.ladder if r.admits == "yes"} or (
        after.requested_width != before.requested_width
    )


@quick
@given(phases())
def test_no_quotas_and_ample_quotas_give_the_same_verdict(one: Phase) -> None:
    unknown = judged(one)
    ample = judged(one, make_bench(quotas=quotas(PROJECT, us_central1=AMPLE)))
    assert errors(unknown) == errors(ample)
    assert unknown.recommended_width == ample.recommended_width
    assert words(unknown.ladder) == words(ample.ladder)


def _same(a: PhaseVerdict, b: PhaseVerdict) -> bool:
    """Equal but for names and places."""
    return (
        errors(a) == errors(b)
        and words(a.ladder) == words(b.ladder)
        and (a.verdict, a.requested_width, a.recommended_width, a.widths, a.length, a.units)
        == (b.verdict, b.requested_width, b.recommended_width, b.widths, b.length, b.units)
    )


def _reworded(command: str, form: int) -> Any:
    """The same command in other words."""
    if form == 0:
        return tuple(command.split())
    if form == 1:
        return "  ".join(f'"{word}"' for word in command.split())
    if form == 2:
        return f"env LOG=1 {command}"
    if form == 3:
        return command.replace("torchrun", "python -m torch.distributed.run")
    return f"timeout 9000 {command}"


@quick
@given(phases(), st.integers(0, 4))
def test_the_same_facts_in_other_words_have_the_same_verdict(one: Phase, form: int) -> None:
    other = one.model_copy(
        update={
            "name": "renamed",
            "command": _reworded(str(one.command), form),
            "justification": "sharded over eight GPUs, as wide as it goes",
            "env": (("A", "b"),),
        }
    )
    assert _same(judged(one), judged(other))


@quick
@given(phases(), st.sampled_from(["seed", "prompt_set", "width", "gpu"]), st.integers(1, 200))
def test_the_name_of_an_axis_says_nothing(one: Phase, name: str, size: int) -> None:
    renamed = Axis(name=name, size=size, values=tuple(str(i) for i in range(size)))
    first = one.model_copy(update={"axes": axes(x=size), "command": "run {x}"})
    second = one.model_copy(update={"axes": (renamed,), "command": f"run {{{name}}}"})
    assert _same(judged(first), judged(second))


@quick
@given(st.lists(phases(), min_size=2, max_size=4), st.randoms())
def test_the_order_of_phases_says_nothing(several: list[Phase], random: Any) -> None:
    named = [one.model_copy(update={"name": f"p{index}"}) for index, one in enumerate(several)]
    shuffled = list(named)
    random.shuffle(shuffled)
    first = {verdict.name: verdict for verdict in judge(parsed(*named), BENCH).phases}
    second = {verdict.name: verdict for verdict in judge(parsed(*shuffled), BENCH).phases}
    assert first == second


@quick
@given(phases(), st.integers(1, 100))
def test_an_axis_split_into_two_is_the_same_work(one: Phase, half: int) -> None:
    whole = one.model_copy(update={"axes": axes(x=2 * half), "command": "run {x}"})
    two = one.model_copy(update={"axes": axes(a=2, b=half), "command": "run {a} {b}"})
    assert _same(judged(whole), judged(two))


sizes = st.one_of(st.integers(0, 3), st.integers(0, 10**9))
anything = st.one_of(st.none(), st.floats(0.0, 1e9, allow_nan=False), st.just(0.0))


@quick
@given(
    st.builds(
        Phase,
        name=st.just("p"),
        intent=st.sampled_from([None, "nothing", "cpu-mid", "inf-70b", *GPU_INTENTS]),
        axes=st.one_of(
            st.none(),
            st.just(()),
            st.lists(sizes, max_size=3).map(
                lambda found: tuple(Axis(name=f"a{i}", size=size) for i, size in enumerate(found))
            ),
        ),
        gpu_hours=anything,
        unit_minutes=st.one_of(anything, st.lists(st.floats(0.0, 1e6), max_size=5).map(tuple)),
        wall_minutes=anything,
        setup_minutes=st.floats(0.0, 1e6),
        width=st.one_of(st.none(), st.integers(0, 20), st.just(10**9)),
        min_width=st.one_of(st.none(), st.integers(0, 20), st.just(10**9)),
        gpus=st.sampled_from([None, 0]),
        gpus_per_shard=st.one_of(st.none(), st.integers(1, 20), st.just(10**9)),
        command=st.one_of(
            st.none(),
            st.text(max_size=30),
            st.lists(st.text(max_size=8), max_size=4).map(tuple),
            st.sampled_from([*COMMANDS.values(), "run {a0} {a1}", "run {a0}"]),
        ),
        outputs=st.lists(st.text(max_size=10), max_size=2).map(tuple),
        merge=st.one_of(st.none(), st.text(max_size=10)),
        after=st.sampled_from([(), ("p",), ("q",)]),
        hold=st.booleans(),
        time_limit_hours=anything,
        pin=st.sampled_from(
            [None, Pin(reason="r", zone="nowhere-a"), Pin(reason="r", provisioning_model=ProvisioningModel.SPOT)]
        ),
    ),
    st.sampled_from([(), ("gcp",), ("slurm",), ("local",), ("gcp", "runpod")]),
)
def test_every_phase_gets_an_answer(one: Phase, lanes: tuple[str, ...]) -> None:
    bench: Bench = make_bench(lanes=lanes)
    verdict = judged(one, bench)
    assert verdict.verdict in ("PASS", "REVISE")
    for found in verdict.findings:
        assert found.message
        assert found.fix
    assert judged(one, bench) == verdict
