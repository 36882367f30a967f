"""The policy table, and what a user may override in it."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from widelane import facts
from widelane.errors import ConfigError
from widelane.models.plan import ProvisioningModel


def test_the_shipped_policy_has_the_documented_values() -> None:
    policy = facts.load_policy()
    assert policy.lane_order[0] == "gcp"
    assert policy.lane_order[-1] == "runpod"
    assert policy.paid_lanes == policy.last_resort_lanes == ("runpod",)
    assert policy.short_gpu_hours == 2.0
    assert policy.spot_if_resumable is False
    assert (policy.narrow_saving_share, policy.narrow_saving_minutes, policy.min_efficiency) == (0.25, 10, 0.5)
    assert (policy.too_wide_ratio, policy.idle_minutes, policy.axis_silence_hours) == (1.10, 15, 2)
    assert (policy.walks_per_day, policy.flex_wait_seconds) == (16, 600)
    assert (policy.last_resort_width, policy.workload_failover) == ("requested", "once")
    assert policy.regions == ("us-central1",)


def test_short_work_leads_with_spot_and_long_work_has_none() -> None:
    policy = facts.load_policy()
    assert policy.models(short=True) == (
        ProvisioningModel.SPOT,
        ProvisioningModel.FLEX_START,
        ProvisioningModel.STANDARD,
    )
    assert policy.models(short=False) == (ProvisioningModel.FLEX_START, ProvisioningModel.STANDARD)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("short_gpu_hours", "2", "must be a number, not '2'"),
        ("short_gpu_hours", True, "must be a number, not True"),
        ("short_gpu_hours", float("nan"), "must be a number, not nan"),
        ("short_gpu_hours", -1, "must be at least 0, not -1"),
        ("too_wide_ratio", 0.9, "must be at least 1, not 0.9"),
        ("walks_per_day", 1.5, "must be a whole number, not 1.5"),
        ("walks_per_day", 0, "must be at least 1, not 0"),
        ("spot_if_resumable", "yes", "must be true or false, not 'yes'"),
        ("workload_failover", "twice", "must be one of once, never, not 'twice'"),
        ("lane_order", "gcp", "must be a list with at least one item, not 'gcp'"),
        ("lane_order", [], "must be a list with at least one item, not []"),
        ("lane_order", ["gcp", "aws"], "must be one of gcp, slurm, ssh, local, runpod, not 'aws'"),
        ("lane_order", ["gcp", "gcp"], "names an item twice"),
        ("widths", [1, 8], "must be listed widest first"),
        ("widths", [8, "4"], "must be a whole number, not '4'"),
        ("regions", [" us-central1"], "must be a word, not ' us-central1'"),
        ("boot_disk_gib", 70000, "must be at most 65536, not 70000"),
    ],
)
def test_an_override_of_the_wrong_kind_names_its_key(key: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        facts.load_policy({key: value}, "widelane.toml")
    assert caught.value.message == f"widelane.toml: policy.{key} {message}"


def test_an_unknown_key_gets_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        facts.load_policy({"shortgpu_hours": 1}, "widelane.toml")
    assert caught.value.message == "widelane.toml: policy.shortgpu_hours is not a key"
    assert caught.value.hint == 'did you mean "short_gpu_hours"?'


def test_values_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match="paid_lanes names a lane that lane_order doesn't have"):
        facts.load_policy({"lane_order": ["gcp", "slurm"]})
    with pytest.raises(ConfigError, match="fence_min_seconds is above run_limit_seconds"):
        facts.load_policy({"run_limit_seconds": 3600, "fence_min_seconds": 7200})


def test_the_version_changes_with_any_value_and_with_nothing_else() -> None:
    shipped = facts.load_policy()
    assert facts.load_policy({"short_gpu_hours": 2}).version == shipped.version
    assert facts.load_policy({}, "elsewhere.toml").version == shipped.version
    versions = {facts.load_policy({"walks_per_day": number}).version for number in (15, 16, 17)}
    assert len(versions) == 3
    assert shipped.version in versions


def test_every_value_says_why_and_none_is_an_amount_of_money() -> None:
    money = re.compile(r"usd|eur|dollar|cost|price|spend|money|budget|\$", re.IGNORECASE)
    for setting in facts.policy_settings().values():
        assert len(setting.why) > 10, setting.name
        assert not money.search(setting.name), setting.name
        assert not money.search(setting.unit), setting.name
    for field in dataclasses.fields(facts.Policy):
        assert not money.search(field.name)


def test_the_policy_cannot_be_changed() -> None:
    policy: Any = facts.load_policy()
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.walks_per_day = 99
