"""Findings about quota: what it denies, with the largest width that fits, and what it leaves unknown."""

from __future__ import annotations

from collections.abc import Iterator

from widelane.models.quota import Admits, QuotaBinding
from widelane.models.verdict import Finding, FindingCode
from widelane.router.bench import GCP
from widelane.router.ladder import gcp_rungs, survey
from widelane.router.phase_case import GpuSide, PhaseCase


def quota_denies(case: PhaseCase, gpu: GpuSide) -> Finding | None:
    """The requested width has machines, and quota denies each of them."""
    able, asked = survey(case.bench, gpu.need), gpu.requested
    if asked not in able.possible or asked in able.admitted:
        return None
    group = case.work.group
    cells = gpu.choice.cells
    fits = [
        width
        for width in able.admitted
        if width % group == 0 and (width not in cells or cells[width].hours <= gpu.limit_hours)
    ]
    largest = max((width for width in fits if width < asked), default=min(fits, default=0))
    rest = f"the largest width that fits is {largest}" if largest else "no other width fits either"
    rungs = gcp_rungs(case.bench, gpu.need, asked, short=True) or gcp_rungs(case.bench, gpu.need, asked, short=False)
    binding = next((rung.binding_quota for rung in rungs if rung.binding_quota is not None), None)
    return case.error(
        FindingCode.QUOTA_DENIES,
        ("width",),
        f"Quota admits no machine of width {asked}{_short_of(binding)}; {rest}.",
        _fix(case, gpu, largest, binding),
        width=asked,
        largest=largest,
        **_numbers(binding),
    )


def _short_of(binding: QuotaBinding | None) -> str:
    if binding is None or binding.limit is None or binding.usage is None:
        return ""
    return f": {binding.metric} has {binding.usage:g} of {binding.limit:g} in use and {binding.needed:g} are needed"


def _fix(case: PhaseCase, gpu: GpuSide, largest: int, binding: QuotaBinding | None) -> str:
    metric = binding.metric if binding is not None else "the quota"
    where = f" in {binding.region}" if binding is not None and binding.region else ""
    more = f"ask for more {metric}{where}, or configure another lane"
    if not largest:
        return f"{more[0].upper()}{more[1:]}."
    least = f" and `min_width: {largest}`" if (case.phase.min_width or 0) > largest else ""
    return f"Ask for `width: {largest}`{least}; or {more}."


def _numbers(binding: QuotaBinding | None) -> dict[str, float | str]:
    if binding is None:
        return {}
    found: dict[str, float | str] = {"metric": binding.metric, "needed": binding.needed}
    if binding.limit is not None and binding.usage is not None:
        found |= {"limit": binding.limit, "usage": binding.usage}
    return found


def quota_unknown(case: PhaseCase, gpu: GpuSide) -> Iterator[Finding]:
    """Advice that the service doesn't list what decides about the requested width."""
    if case.bench.quotas is None or GCP not in survey(case.bench, gpu.need).lanes:
        return
    rungs = gcp_rungs(case.bench, gpu.need, gpu.requested, short=True)
    if rungs and all(rung.admits is Admits.UNKNOWN for rung in rungs):
        binding = rungs[0].binding_quota
        yield case.advice(
            FindingCode.QUOTA_UNKNOWN,
            ("width",),
            f"The service doesn't list {binding.metric if binding else 'the quotas'}, so whether width"
            f" {gpu.requested} is admitted is unknown.",
            "Nothing to change: each rung is tried once.",
            width=gpu.requested,
            quota="unknown",
        )


def quota_word(case: PhaseCase, gpu: GpuSide, width: int) -> str:
    """What quota says of a width that isn't denied: yes or unknown."""
    rungs = gcp_rungs(case.bench, gpu.need, width, short=True)
    return "yes" if any(rung.admits is Admits.YES for rung in rungs) else "unknown"
