"""Where the checks of one lane are written down."""

from __future__ import annotations

from widelane.models.checkup import CheckStatus, SetupCheck

_CLOSE_SECONDS = 30.0
_FAR_SECONDS = 300.0
"""Tokens are refused when clocks are further apart than that."""


class Sheet:
    """Checks in the order in which they were made."""

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self.checks: list[SetupCheck] = []

    def ok(self, name: str, message: str) -> None:
        """All is well."""
        self._add(name, CheckStatus.OK, message, "")

    def warn(self, name: str, message: str, fix: str) -> None:
        """It works, or can't be told."""
        self._add(name, CheckStatus.WARN, message, fix)

    def fail(self, name: str, message: str, fix: str) -> None:
        """A dispatch that needs it would not work."""
        self._add(name, CheckStatus.FAIL, message, fix)

    def clock(self, apart: float, who: str) -> None:
        """How far this machine's clock is ahead of another's, in seconds."""
        told = f"this machine's clock is {abs(apart):.0f} s {'ahead of' if apart > 0 else 'behind'} that of {who}"
        fix = "set the clock by NTP: `timedatectl set-ntp true`"
        if abs(apart) > _FAR_SECONDS:
            self.fail("clock", told, fix)
        elif abs(apart) > _CLOSE_SECONDS:
            self.warn("clock", told, fix)
        else:
            self.ok("clock", f"within {_CLOSE_SECONDS:.0f} s of that of {who}")

    def _add(self, name: str, status: CheckStatus, message: str, fix: str) -> None:
        self.checks.append(SetupCheck(lane=self.lane, name=name, status=status, message=message, fix=fix))
