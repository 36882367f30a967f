"""What a look at the set-up found."""

from __future__ import annotations

from enum import StrEnum

from widelane.models.base import Frozen


class CheckStatus(StrEnum):
    """`warn`: it works, or could not be told; `fail`: a dispatch that needs it would not."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class SetupCheck(Frozen):
    """One thing that was looked at. `lane` is `machine` for this machine itself; `fix` is "" when all is well."""

    lane: str
    name: str
    status: CheckStatus
    message: str
    fix: str = ""


class DoctorReport(Frozen):
    """Every check, in the order of the lanes. `status` is the worst of them."""

    status: CheckStatus
    checks: tuple[SetupCheck, ...]
