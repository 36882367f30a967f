"""What is sent as source doesn't change by what the work makes of it."""

from __future__ import annotations

from pathlib import Path

from widelane import plan
from widelane.dispatcher.sourcing import publish_sources
from widelane.store import open_store

PLAN = """\
widelane: 1
phases:
  - name: count
    gpus: 0
    wall_minutes: 1
    axes: {part: 2}
    workdir: jobs/count
    source: {path: .}
    command: python3 count.py {part}
    outputs: ["out/{part}.txt"]
    merge: python3 count.py sum
    merge_outputs: [sum.txt]
"""


def test_outputs_below_the_phase_s_work_folder_are_no_part_of_its_source(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    work = folder / "jobs" / "count"
    work.mkdir(parents=True)
    (work / "count.py").write_text("")
    store = open_store((tmp_path / "store").as_uri())
    parsed = plan.parse(PLAN, "<argument>", str(folder))
    before = publish_sources(store, parsed)
    (work / "out").mkdir()
    (work / "out" / "0.txt").write_text("made")
    (work / "sum.txt").write_text("made")
    assert publish_sources(store, parsed) == before
    (folder / "sum.txt").write_text("not made by the work")
    assert publish_sources(store, parsed) != before
