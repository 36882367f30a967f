"""What a partition holds, read from sinfo."""

from __future__ import annotations

import pytest

from widelane.config.timelimit import seconds_of
from widelane.lanes.slurm.partition import Share, gpus_of, minutes_of, read_partition

pytestmark = pytest.mark.slow


def row(
    node: str, partition: str = "main*", state: str = "idle", gres: str = "gpu:a100:8", **more: str
) -> dict[str, str]:
    base = {"cpus": "64", "memory": "1000000", "limit": "1-00:00:00"}
    return {"node": node, "partition": partition, "state": state, "gres": gres, **base, **more}


@pytest.mark.parametrize(
    ("gres", "count"),
    [
        ("gpu:a100:8", 8),
        ("gpu:a100:8(S:0-1)", 8),
        ("gpu:8", 8),
        ("gpu", 1),
        ("gpu:a100:4(S:0),gpu:h100:2(S:1)", 6),
        ("shard:32,gpu:a100:4(IDX:0-3),nvme:1", 4),
        ("(null)", 0),
        ("", 0),
        ("craynetwork:4", 0),
    ],
)
def test_gpus_are_counted_in_every_spelling(gres: str, count: int) -> None:
    assert gpus_of(gres) == count


def test_only_gpus_of_the_type_asked_for_count() -> None:
    assert gpus_of("gpu:a100:4,gpu:h100:2", "h100") == 2
    assert gpus_of("gpu:8", "h100") == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("0:10", 10),
        ("2:00:00", 7200),
        ("1-00:00:00", 86_400),
        ("1-12", 129_600),
        ("2-01:30", 178_200),
        ("infinite", None),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_a_time_limit_is_read_in_every_spelling(text: str, seconds: int | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["soon", "1:2:3:4", "-1", "1-", "1d"])
def test_what_is_no_time_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a time limit"):
        seconds_of(text)


def test_a_time_is_asked_for_in_whole_minutes() -> None:
    assert [minutes_of(seconds) for seconds in (1, 60, 61, 3600)] == [1, 1, 2, 60]


def test_the_default_partition_is_the_one_with_the_star() -> None:
    rows = [row("a", "short", limit="30:00"), row("b", "main*")]
    found = read_partition(rows, "", "")
    assert found is not None
    assert ([node.name for node in found.nodes], found.seconds) == (["b"], 86_400)
    assert read_partition(rows, "main", "") == found
    assert read_partition(rows, "nope", "") is None
    assert read_partition([row("a", "short")], "", "") is None


@pytest.mark.parametrize("state", ["down", "down*", "drain", "drng", "idle*", "maint", "fail"])
def test_a_node_that_is_away_does_not_count(state: str) -> None:
    found = read_partition([row("a", gres="gpu:8", state=state), row("b", gres="gpu:2")], "", "")
    assert found is not None
    assert found.gpus == 2


@pytest.mark.parametrize("state", ["alloc", "mix", "idle", "comp", "resv", "idle~", "mix#"])
def test_a_node_that_is_busy_or_asleep_counts(state: str) -> None:
    found = read_partition([row("a", gres="gpu:8", state=state), row("b", gres="gpu:2")], "", "")
    assert found is not None
    assert found.gpus == 8


def test_with_every_node_away_they_count_as_configured() -> None:
    found = read_partition([row("a", state="down")], "", "")
    assert found is not None
    assert found.gpus == 8


def test_a_job_asks_for_a_share_that_every_node_with_its_gpus_can_give() -> None:
    rows = [row("a"), row("b", gres="gpu:4", cpus="16", memory="200000"), row("c", gres="gpu:1", cpus="4")]
    found = read_partition(rows, "", "")
    assert found is not None
    assert found.share(8) == Share(64, 900_000)
    assert found.share(4) == Share(16, 180_000)
    assert found.share(2) == Share(8, 90_000)
    assert found.share(0).cpus == 1
    assert found.share(16) == Share(16, 0)
