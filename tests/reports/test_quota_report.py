from __future__ import annotations

from widelane.models.plan import ProvisioningModel
from widelane.models.quota import Admits, QuotaBinding, QuotaReport, RungQuota
from widelane.reports.paper import Paper
from widelane.reports.quota import quota_report


def test_a_quota_report_names_the_binding_metric(paper: Paper) -> None:
    binding = QuotaBinding(metric="A2_CPUS", limit=96, usage=48, needed=96, region="us-central1")
    rungs = (
        RungQuota(
            machine_type="a2-ultragpu-8g",
            width=8,
            provisioning_model=ProvisioningModel.STANDARD,
            admits=Admits.NO,
            binding=binding,
            region="us-central1",
        ),
        RungQuota(
            machine_type="a2-ultragpu-4g",
            width=4,
            provisioning_model=ProvisioningModel.SPOT,
            admits=Admits.UNKNOWN,
            binding=QuotaBinding(metric="A2_CPUS", limit=None, usage=None, needed=48),
        ),
    )
    report = QuotaReport(project="sim", taken_at="2026-03-01T12:00:00Z", largest_width=4, rungs=rungs, note="1 region")
    assert quota_report(report, paper).splitlines() == [
        "largest admitted width 4  project sim us-central1, read 2026-03-01 12:00:00Z",
        "  1 region",
        "",
        "  width  machine type    model     admits   binding metric        used  needs",
        "      8  a2-ultragpu-8g  STANDARD  no       A2_CPUS              48/96     96",
        "      4  a2-ultragpu-4g  SPOT      unknown  A2_CPUS         not listed     48",
    ]


def test_regions_are_named_when_there_are_several(paper: Paper) -> None:
    first = RungQuota(
        machine_type="a2-ultragpu-8g",
        width=8,
        provisioning_model=ProvisioningModel.SPOT,
        admits=Admits.YES,
        binding=None,
        region="us-central1",
    )
    second = first.model_copy(update={"region": "europe-west4"})
    report = QuotaReport(project="sim", taken_at="now", largest_width=8, rungs=(first, second))
    assert quota_report(report, paper).splitlines() == [
        "largest admitted width 8  project sim, read now",
        "",
        "  width  machine type    model  region        admits  binding metric  used  needs",
        "      8  a2-ultragpu-8g  SPOT   us-central1   yes     -                  -      -",
        "      8  a2-ultragpu-8g  SPOT   europe-west4  yes     -                  -      -",
    ]


def test_an_unknown_width_is_not_called_denied(paper: Paper) -> None:
    rung = RungQuota(
        machine_type="a2-ultragpu-8g",
        width=8,
        provisioning_model=ProvisioningModel.SPOT,
        admits=Admits.UNKNOWN,
        binding=None,
    )
    report = QuotaReport(project="sim", taken_at="now", largest_width=0, rungs=(rung,))
    assert quota_report(report, paper).startswith("no width is known to be admitted  project sim, read now\n")


def test_no_admitted_width_is_said_so(paper: Paper) -> None:
    report = QuotaReport(project="sim", taken_at="now", largest_width=0, rungs=())
    assert quota_report(report, paper) == "no width is admitted  project sim, read now\n"
