"""The quotas of the example scenarios admit what their stock is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.benches import make_bench, quotas
from widelane import plan
from widelane.router import quota_report

SCENARIOS = ("eight-is-free", "eight-is-gone", "one-is-left", "two-is-left")


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_rehearsal_knows_which_width_its_quotas_admit(name: str, repo: Path) -> None:
    assert {path.stem for path in (repo / "examples" / "scenarios").glob("*.yaml")} == set(SCENARIOS)
    scenario: dict[str, Any] = yaml.safe_load((repo / "examples" / "scenarios" / f"{name}.yaml").read_text("utf-8"))
    listed = {
        region.replace("-", "_"): {metric: (float(limit), 0.0) for metric, limit in metrics.items()}
        for region, metrics in scenario["quotas"].items()
    }
    everywhere = {metric: (float(limit), 0.0) for metric, limit in scenario["global_quotas"].items()}
    bench = make_bench(quotas=quotas(everywhere, **listed))
    assert quota_report(bench, plan=plan.read(repo / "examples" / "capture" / "plan.md")).largest_width == 8
    assert quota_report(bench, intent="lora-7b").largest_width == 8
