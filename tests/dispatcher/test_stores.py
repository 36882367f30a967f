"""Which store a run on Google Cloud has, and what is said when machines can't reach it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from widelane import plan
from widelane.config import GcpSettings, Settings
from widelane.dispatcher.assembly import make_bench
from widelane.dispatcher.submission import SimTarget, Submission
from widelane.errors import ConfigError, LaneAuthError
from widelane.router import judge

PLAN = """\
widelane: 1
phases:
  - name: work
    intent: capture-7b
    gpu_hours: 0.1
    width: 1
    axes: none
    why: one small job
{line}
    command: python3 work.py
    outputs: [out.txt]
"""


def on_gcp(folder: Path, **changes: Any) -> Submission:
    """A submission of a GPU phase with those settings, that has refused nothing yet."""
    gcp = GcpSettings(project="p", bucket=changes.pop("bucket", ""))
    settings = Settings(home=folder / "home", gcp=gcp, store=changes.pop("given", None))
    parsed = plan.parse(PLAN.format(line=changes.pop("line", "")), "<argument>", str(folder))
    return Submission(settings, parsed, judge(parsed, make_bench(settings)))


@pytest.mark.parametrize(
    ("changes", "reason", "hint"),
    [
        ({}, "can't reach the store file:", "set bucket in [lanes.gcp]"),
        ({"given": "file:///srv/x"}, "can't reach the store file:///srv/x", "set bucket in [lanes.gcp]"),
        ({"bucket": "mine", "line": "    store: file:///srv/x\n"}, "can't reach the store file:///srv/x", "gs://mine"),
        ({"bucket": "mine"}, "credentials", "gcloud auth"),
        ({"bucket": "mine", "given": "file:///srv/x"}, "credentials", "gcloud auth"),
        ({"given": "gs://other/runs"}, "credentials", "gcloud auth"),
    ],
)
def test_the_bucket_of_the_lane_is_used_where_no_other_store_can_be_reached(
    tmp_path: Path, changes: dict[str, Any], reason: str, hint: str
) -> None:
    with pytest.raises((ConfigError, LaneAuthError)) as refused:
        on_gcp(tmp_path, **changes).prepare(phase=None, fresh=False, sim=None)
    assert reason in refused.value.message
    assert hint in refused.value.hint
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("store", ["", "    store: gs://real/runs\n"])
def test_a_rehearsal_reaches_no_real_bucket(tmp_path: Path, store: str) -> None:
    settings = Settings(home=tmp_path / "home", gcp=GcpSettings(project="p", bucket="real"), store="gs://other")
    settings = settings.simulated("http://127.0.0.1:9")
    parsed = plan.parse(PLAN.format(line=store), "<argument>", str(tmp_path))
    submission = Submission(settings, parsed, judge(parsed, make_bench(settings)))
    _, request = submission.prepare(phase=None, fresh=False, sim=SimTarget("http://127.0.0.1:9"))
    assert request.store_url == (tmp_path / "home" / "rehearsals").as_uri()
