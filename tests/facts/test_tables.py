"""Bad tables are refused with file, row and column; the shipped ones hold what the product says."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from widelane import facts
from widelane.errors import TableError
from widelane.facts.table import DATA
from widelane.models.attempt import Outcome
from widelane.models.plan import ProvisioningModel

Change = Callable[[str, int, str, str], Path]


@pytest.fixture
def change(tmp_path: Path) -> Change:
    """Copy the tables with one cell (row as a line number) replaced."""

    def apply(file: str, line: int, column: str, value: str) -> Path:
        folder = tmp_path / "data"
        shutil.copytree(DATA, folder)
        rows = list(csv.reader((folder / file).read_text(encoding="utf-8").splitlines()))
        rows[line - 1][rows[0].index(column)] = value
        with (folder / file).open("w", newline="", encoding="utf-8") as out:
            csv.writer(out).writerows(rows)
        return folder

    return apply


def _load_everything(folder: Path) -> None:
    facts.load_policy(folder=folder)
    loaded = facts.load_catalog(folder)
    assert loaded.prices
    assert loaded.pod_gpus


BAD_CELLS = [
    ("machine_types.csv", 2, "machine_type", ""),
    ("machine_types.csv", 3, "machine_type", "a2-highgpu-1g"),
    ("machine_types.csv", 2, "family", ""),
    ("machine_types.csv", 2, "lane", ""),
    ("machine_types.csv", 2, "vcpus", "0"),
    ("machine_types.csv", 2, "vcpus", "twelve"),
    ("machine_types.csv", 2, "memory_gib", "nan"),
    ("machine_types.csv", 2, "memory_gib", "-1"),
    ("machine_types.csv", 2, "gpu", ""),
    ("machine_types.csv", 2, "gpus", "1.5"),
    ("machine_types.csv", 2, "gpus", "8/1"),
    ("machine_types.csv", 2, "gpus", "-1"),
    ("machine_types.csv", 2, "gpu_mem_gib", "0"),
    ("machine_types.csv", 2, "local_ssd_gib", "-375"),
    ("machine_types.csv", 2, "provisioning_models", "SPOT;FLEXSTART"),
    ("machine_types.csv", 2, "provisioning_models", "SPOT; STANDARD"),
    ("machine_types.csv", 2, "source", ""),
    ("machine_types.csv", 2, "dated", ""),
    ("zones.csv", 2, "machine_types", "a2-highgpu-1g/3g"),
    ("zones.csv", 2, "machine_types", "z9-*"),
    ("zones.csv", 2, "region", ""),
    ("zones.csv", 2, "zone", "us-central1-a"),
    ("zones.csv", 3, "zone", "asia-northeast1-a"),
    ("zones.csv", 2, "source", ""),
    ("zones.csv", 2, "dated", ""),
    ("prices.csv", 2, "machine_type", "a2-highgpu-3g"),
    ("prices.csv", 2, "region", ""),
    ("prices.csv", 3, "region", "asia-northeast1"),
    ("prices.csv", 2, "on_demand", "free"),
    ("prices.csv", 2, "spot", "-1"),
    ("prices.csv", 2, "dated", ""),
    ("pod_gpus.csv", 2, "gpu", ""),
    ("pod_gpus.csv", 3, "gpu", "NVIDIA L4"),
    ("pod_gpus.csv", 2, "memory_gib", "0"),
    ("pod_gpus.csv", 2, "why", ""),
    ("pod_gpus.csv", 2, "source", ""),
    ("pod_gpus.csv", 2, "dated", ""),
    ("intents.csv", 2, "name", ""),
    ("intents.csv", 3, "name", "debug"),
    ("intents.csv", 2, "base_gpus", "65"),
    ("intents.csv", 2, "floor", "2"),
    ("intents.csv", 2, "group", "0"),
    ("intents.csv", 2, "gpu_mem_gib", "inf"),
    ("intents.csv", 2, "base", "g2;a2-hihgpu"),
    ("intents.csv", 2, "wide", "a9"),
    ("intents.csv", 2, "note", ""),
    ("rungs.csv", 3, "family", "a2-ultragpu"),
    ("rungs.csv", 2, "provisioning_models", "SPOT;FLEX"),
    ("rungs.csv", 2, "widths", "1;two"),
    ("rungs.csv", 2, "why", ""),
    ("policy.csv", 2, "name", "lane_oder"),
    ("policy.csv", 3, "name", "lane_order"),
    ("policy.csv", 2, "value", ""),
    ("policy.csv", 2, "value", "gcp;slurm;slurm"),
    ("policy.csv", 2, "value", "gcp;nowhere"),
    ("policy.csv", 3, "value", "gcp;ssh;nowhere"),
    ("policy.csv", 5, "value", "widest"),
    ("policy.csv", 8, "value", "1;2;4;8"),
    ("policy.csv", 8, "value", "8;4;two"),
    ("policy.csv", 11, "value", "nan"),
    ("policy.csv", 12, "value", "yes"),
    ("policy.csv", 2, "kind", "word"),
    ("policy.csv", 8, "min", "least"),
    ("policy.csv", 8, "max", "0"),
    ("policy.csv", 2, "why", ""),
]


@pytest.mark.parametrize(("file", "line", "column", "value"), BAD_CELLS)
def test_a_bad_cell_is_named_by_file_row_and_column(
    change: Change, file: str, line: int, column: str, value: str
) -> None:
    with pytest.raises(TableError) as caught:
        _load_everything(change(file, line, column, value))
    assert (caught.value.file, caught.value.row, caught.value.column) == (file, line, column)


def test_every_column_of_every_table_has_a_bad_value_that_is_refused() -> None:
    free_text = {"machine_types.csv": {"notes"}, "policy.csv": {"unit"}, "prices.csv": {"source"}}
    # Quota metrics are names of the service: any text is one.
    free_text["machine_types.csv"] |= {
        "gpu_quota_standard",
        "gpu_quota_preemptible",
        "vcpu_quota",
        "local_ssd_quota",
        "global_quota",
    }
    for file in ("machine_types.csv", "zones.csv", "prices.csv", "intents.csv", "rungs.csv", "policy.csv"):
        header = set(next(csv.reader((DATA / file).read_text(encoding="utf-8").splitlines())))
        tried = {column for name, _, column, _ in BAD_CELLS if name == file}
        assert header - free_text.get(file, set()) == tried, file


@pytest.mark.parametrize(
    ("text", "row", "column"),
    [
        ("family,provisioning_models,widths\n", 1, "why"),
        ("family,provisioning_models,widths,why,when\n", 1, "when"),
        ("family,widths,provisioning_models,why\n", 1, "order"),
        ("", 1, "family"),
        ("family,provisioning_models,widths,why\na2-ultragpu,SPOT\n", 2, "widths"),
        ('family,provisioning_models,widths,why\n"a2,SPOT,1,x\n', 2, "-"),
    ],
)
def test_a_table_of_another_shape_is_refused(tmp_path: Path, text: str, row: int, column: str) -> None:
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    (folder / "rungs.csv").write_text(text, encoding="utf-8")
    with pytest.raises(TableError) as caught:
        facts.load_policy(folder=folder)
    assert (caught.value.file, caught.value.row, caught.value.column) == ("rungs.csv", row, column)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"])
def test_a_missing_or_binary_table_is_refused(tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    (folder / "zones.csv").unlink()
    if content is not None:
        (folder / "zones.csv").write_bytes(content)
    with pytest.raises(TableError, match=r"zones\.csv: row 0"):
        facts.load_catalog(folder)


def test_a_policy_value_left_out_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(DATA, folder)
    lines = (folder / "policy.csv").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith("walks_per_day,")]
    (folder / "policy.csv").write_text("\n".join(kept) + "\n", encoding="utf-8")
    with pytest.raises(TableError, match="walks_per_day is missing"):
        facts.load_policy(folder=folder)


def test_zone_patterns_are_expanded_in_file_order() -> None:
    offers = facts.catalog().offers
    central = [offer.zone for offer in offers["a2-ultragpu-8g"] if offer.region == "us-central1"]
    assert central == ["us-central1-a", "us-central1-c"]
    assert [offer.zone for offer in offers["g2-standard-96"]] == [offer.zone for offer in offers["g2-standard-4"]]
    assert len(offers["e2-standard-8"]) == len(offers["n2-highmem-16"]) == 22
    assert offers["a4x-highgpu-4g"] == ()


def test_fractional_types_are_kept_and_have_no_whole_gpu() -> None:
    machines = facts.catalog().machine_types
    assert (machines["g4-standard-6"].gpus, machines["g4-standard-6"].gpu_share) == (0, 0.125)
    assert (machines["g4-standard-48"].gpus, machines["g4-standard-48"].gpu_share) == (1, None)


def test_reservations_are_not_a_way_to_buy() -> None:
    machines = facts.catalog().machine_types
    assert machines["a4x-highgpu-4g"].provisioning_models == frozenset()
    narrow_h100 = machines["a3-highgpu-1g"].provisioning_models
    assert narrow_h100 == {ProvisioningModel.SPOT, ProvisioningModel.FLEX_START}


def test_prices_are_reported_for_whole_machines() -> None:
    price = facts.catalog().prices[("a2-ultragpu-8g", "us-central1")]
    assert (price.on_demand, price.spot) == (40.5504, 22.0764)
    assert ("a4-highgpu-8g", "us-central1") not in facts.catalog().prices


def test_every_error_body_has_a_class_that_the_walk_knows() -> None:
    cases = facts.gce_errors()["cases"]
    outcomes = {outcome.value for outcome in Outcome}
    assert len(cases) == 46
    assert {case["classification"].replace("permanent-config", "config") for case in cases} <= outcomes
    assert json.dumps(cases)


def test_the_catalog_is_read_once() -> None:
    assert facts.catalog() is facts.catalog()
