"""dispatch_status with wait_s: short waits on worker threads, progress in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from mcp.server.mcpserver import Context

from widelane.models.attempt import Outcome
from widelane.models.dispatch import RunStatus
from widelane.reports.paper import plural
from widelane.tools.dispatch_status import DispatchStatusInput, dispatch_status, moved

if TYPE_CHECKING:
    from widelane.tools.desk import Desk

SLICE_SECONDS = 1.0
"""Longest that a thread is held; a cancelled call ends within it."""
_WAITS = anyio.CapacityLimiter(32)


class Progress:
    """Tells a caller how far a run is; the number only ever grows, as the protocol asks."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._told = 0.0

    async def tell(self, status: RunStatus) -> None:
        """Send a notification if the run got further."""
        value, total, text = measure(status)
        if value > self._told:
            self._told = value
            await self._ctx.report_progress(value, total, text)


def measure(status: RunStatus) -> tuple[float, float, str]:
    """(progress, total, words). Each unit counts 1; finding a machine counts 1, in ever smaller parts a try."""
    rows = [row for phase in status.phases for row in phase.attempts]
    tried = sum(row.outcome not in (None, Outcome.SKIPPED) for row in rows)
    granted = any(row.outcome is Outcome.GRANTED for row in rows)
    done = sum(phase.units.succeeded + phase.units.failed for phase in status.phases)
    total = sum(phase.units.total for phase in status.phases)
    search = 1.0 if granted or not status.state.live else tried / (tried + 1)
    words = f"{status.state.value}: {plural(tried, 'rung')} tried, {done} of {plural(total, 'unit')} done"
    return done + search, float(max(total, done) + 1), words


async def await_status(given: DispatchStatusInput, desk: Desk, ctx: Context) -> RunStatus:
    """The run once it has moved or ended, or `wait_s` seconds are over."""
    deadline = anyio.current_time() + given.wait_s
    progress = Progress(ctx)
    first = status = await _threaded(partial(dispatch_status, given.model_copy(update={"wait_s": 0.0}), desk))
    await progress.tell(status)
    while status.state.live and not moved(first, status) and (left := deadline - anyio.current_time()) > 0:
        wait = partial(desk.runs.wait, status.run_id, min(left, SLICE_SECONDS), after_seq=status.last_seq)
        status = await _threaded(wait)
        await progress.tell(status)
    return status


async def _threaded(look: Callable[[], RunStatus]) -> RunStatus:
    return await anyio.to_thread.run_sync(look, limiter=_WAITS)
