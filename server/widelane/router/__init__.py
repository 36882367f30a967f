"""Pure arithmetic from a plan to its verdict, ladder, units and quota admission."""

from __future__ import annotations

from widelane.router.admission import admit, consumption, region_of, regions_of
from widelane.router.bench import Bench
from widelane.router.comparing import compare
from widelane.router.fence import fence_seconds, wall_seconds
from widelane.router.judge import judge, plan_digest
from widelane.router.mending import mends
from widelane.router.quota_answers import saved_quotas
from widelane.router.quota_report import quota_report
from widelane.router.rooms import fit_rooms
from widelane.router.units import Unit, UnitList, UnitSalt, dispatch_key, make_units, static_shards

__all__ = [
    "Bench",
    "Unit",
    "UnitList",
    "UnitSalt",
    "admit",
    "compare",
    "consumption",
    "dispatch_key",
    "fence_seconds",
    "fit_rooms",
    "judge",
    "make_units",
    "mends",
    "plan_digest",
    "quota_report",
    "region_of",
    "regions_of",
    "saved_quotas",
    "static_shards",
    "wall_seconds",
]
