"""Which width to recommend: the asked one, or the fixed point of what the findings about width say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from widelane.facts import Policy
from widelane.router.widths import Cell
from widelane.router.work import Mode, Work

_SLACK = 1e-9
"""Hours below which two times are the same: a threshold that is met exactly is met."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The widths to choose from, narrowest first, with what is known of each.

    `start` is the narrowest that the plan and the intent allow to ask for. `feasible` have a machine that holds the
    need within the run limit; `admitted` are those of them that no quota denies.
    """

    widths: tuple[int, ...]
    start: int
    least: int
    cells: Mapping[int, Cell]
    feasible: frozenset[int]
    admitted: frozenset[int]
    policy: Policy

    def wider(self, width: int) -> Cell | None:
        """The cell that makes `width` needlessly narrow: the fastest one that saves enough; None when none does."""
        now = self.cells.get(width)
        if now is None:
            return None
        better = [
            cell
            for wider, cell in self.cells.items()
            if wider > width and wider in self.admitted and self._pays(now, cell)
        ]
        if len(better) < 2:
            return better[0] if better else None
        return min(better, key=lambda cell: (round(cell.hours, 9), cell.width))

    def narrower(self, width: int) -> Cell | None:
        """The cell that makes `width` too wide: the narrowest that is nearly as fast and not itself too narrow.

        A width that quota denies is no way out for one that it admits.
        """
        now = self.cells.get(width)
        if now is None:
            return None
        able = self.admitted if width in self.admitted else self.feasible
        limit = now.hours * self.policy.too_wide_ratio + _SLACK
        return next(
            (
                cell
                for narrow, cell in self.cells.items()
                if self.least <= narrow < width
                and narrow in able
                and cell.hours <= limit
                and self.wider(narrow) is None
            ),
            None,
        )

    def settle(self, width: int) -> int:
        """The width at which no finding about wider or narrower is left, starting from `width`.

        Widening goes to the fastest width, at which nothing wider pays; narrowing never goes to a width at which
        something wider pays. So it ends.
        """
        better = self.wider(width)
        if better is not None:
            width = better.width
        while (fitting := self.narrower(width)) is not None:
            width = fitting.width
        return width

    def default(self) -> int:
        """The width when none is asked: doubled while that pays, then down to what quota admits, then settled."""
        if not self.feasible:
            return self.start
        width = self._first(self.feasible)
        for wider in self.widths:
            if wider > width and wider in self.feasible:
                if not self.doubling_pays(width, wider):
                    break
                width = wider
        return self.settle(width if width in self.admitted else self.granted(width))

    def granted(self, width: int) -> int:
        """The next width that quota admits: narrower if there is one, else wider, else the width itself."""
        below = [w for w in self.admitted if w < width]
        return max(below) if below else min(self.admitted, default=width)

    def doubling_pays(self, width: int, wider: int) -> bool:
        """Whether going one step wider saves enough and stays efficient."""
        now, then = self.cells.get(width), self.cells.get(wider)
        if now is None or then is None:
            return False
        least = max(self.policy.default_gain_minutes / 60, self.policy.default_gain_share * now.hours)
        return now.hours - then.hours >= least - _SLACK and then.efficiency >= self.policy.min_efficiency - _SLACK

    def _first(self, widths: frozenset[int]) -> int:
        return min((w for w in widths if w >= self.start), default=max(widths))

    def _pays(self, now: Cell, wider: Cell) -> bool:
        saved = now.hours - wider.hours
        # A threshold of zero is no reason to hold more GPUs for nothing.
        return (
            saved > _SLACK
            and saved >= self.policy.narrow_saving_share * now.hours - _SLACK
            and saved >= self.policy.narrow_saving_minutes / 60 - _SLACK
            and wider.efficiency >= self.policy.min_efficiency - _SLACK
        )


def binding(work: Work, choice: Choice, asked: int | None, width: int) -> str:
    """The one term that set the recommended width."""
    if asked == width:
        return "asked"
    if work.mode is Mode.SINGLE or work.fixed is not None:
        return "command"
    if work.cap is not None and width >= work.cap * work.group:
        return "waiver"
    if work.usable is not None and width >= work.usable:
        return "units"
    wider = next((other for other in choice.widths if other > width), None)
    return "machines" if wider is None else _against(choice, wider)


def _against(choice: Choice, wider: int) -> str:
    """What speaks against the next wider width."""
    if wider not in choice.feasible:
        return "fit"
    if wider not in choice.admitted:
        return "quota"
    if wider not in choice.cells:
        return "estimate"
    return "efficiency" if choice.cells[wider].efficiency < choice.policy.min_efficiency else "gain"
