"""Quotas of regions and of the project, from their documents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from widelane.models.quota import QuotaMetric, QuotaSnapshot, RegionQuota


def snapshot(
    project: str,
    now: datetime,
    regions: Mapping[str, Mapping[str, Any] | None],
    project_document: Mapping[str, Any] | None,
) -> QuotaSnapshot:
    """What was answered. A region that gave no quotas (None, or with a warning only) is unknown, not empty."""
    return QuotaSnapshot(
        project=project,
        taken_at=now.isoformat(),
        regions=tuple(RegionQuota(region=name, metrics=_metrics(found)) for name, found in regions.items()),
        global_metrics=_metrics(project_document),
    )


def _metrics(document: Mapping[str, Any] | None) -> tuple[QuotaMetric, ...] | None:
    listed: list[Mapping[str, Any]] = document.get("quotas", []) if document is not None else []
    return (
        tuple(
            QuotaMetric(
                metric=str(entry.get("metric", "")),
                limit=float(entry.get("limit", 0.0)),
                usage=float(entry.get("usage", 0.0)),
            )
            for entry in listed
        )
        or None
    )
