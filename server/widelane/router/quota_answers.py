"""Quotas from answers that were saved: `gcloud compute regions describe` and `project-info describe`, or our own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError

from widelane.errors import InputError
from widelane.models.quota import QuotaMetric, QuotaSnapshot, RegionQuota

_HINT = (
    "save `gcloud compute regions describe REGION --format=json`, `gcloud compute project-info describe --format=json`,"
    " or a snapshot of widelane"
)


def saved_quotas(documents: Iterable[tuple[str, Any]], taken_at: str) -> QuotaSnapshot:
    """One snapshot of several answers, each with the name of its file; a later one about a region replaces an earlier.

    Raises InputError for a document that is none of them.
    """
    project, when, everywhere = "", taken_at, None
    regions: dict[str, RegionQuota] = {}
    for origin, body in _each(documents):
        if "taken_at" in body:
            own = _snapshot(origin, body)
            project, when, everywhere = own.project, own.taken_at, own.global_metrics or everywhere
            regions |= {region.region: region for region in own.regions}
        elif _is_project(body):
            project, everywhere = str(body.get("name", "")), _metrics(origin, body)
        else:
            regions[_name(origin, body)] = RegionQuota(region=_name(origin, body), metrics=_metrics(origin, body))
    return QuotaSnapshot(project=project, taken_at=when, regions=tuple(regions.values()), global_metrics=everywhere)


def _each(documents: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Each answer; a list is that of `regions list`."""
    for origin, document in documents:
        for body in cast("list[object]", document) if isinstance(document, list) else [document]:
            if not isinstance(body, dict):
                raise InputError(f"{origin} holds no answer about quotas", hint=_HINT)
            yield origin, cast("dict[str, Any]", body)


def _is_project(body: Mapping[str, Any]) -> bool:
    return body.get("kind") == "compute#project" or (
        "kind" not in body and any(key in body for key in ("commonInstanceMetadata", "defaultServiceAccount"))
    )


def _name(origin: str, body: Mapping[str, Any]) -> str:
    name = body.get("name")
    if not isinstance(name, str) or not name or body.get("kind", "compute#region") != "compute#region":
        raise InputError(f"{origin} holds no answer about quotas", hint=_HINT)
    return name


def _snapshot(origin: str, body: Mapping[str, Any]) -> QuotaSnapshot:
    try:
        return QuotaSnapshot.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{origin}: {where}: {first['msg']}", hint=_HINT) from None


def _metrics(origin: str, body: Mapping[str, Any]) -> tuple[QuotaMetric, ...] | None:
    """None when the service answered without quotas, which it may: they are unknown then."""
    listed = body.get("quotas")
    if listed is None or listed == []:
        return None
    if not isinstance(listed, list):
        raise InputError(f"{origin}: quotas is no list", hint=_HINT)
    return tuple(_metric(origin, entry) for entry in cast("list[object]", listed))


def _metric(origin: str, entry: object) -> QuotaMetric:
    shown = str(entry)[:80]
    found = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    name, limit, usage = found.get("metric"), found.get("limit"), found.get("usage", 0.0)
    numbers = [value for value in (limit, usage) if isinstance(value, int | float) and not isinstance(value, bool)]
    if not isinstance(name, str) or len(numbers) != 2:
        raise InputError(f"{origin}: {shown} is no metric with limit and usage", hint=_HINT)
    return QuotaMetric(metric=name, limit=float(numbers[0]), usage=float(numbers[1]))
