"""The one process of a home that walks, follows and lets go.

It is started on demand, holds the home's lock for life, keeps one thread a live dispatch, and leaves when no run is
live.
"""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
from anyio import CapacityLimiter, to_thread

from widelane.dispatcher.assembly import open_case, system_edge
from widelane.dispatcher.book import Book, Page
from widelane.dispatcher.edge import Edge
from widelane.dispatcher.locking import hold
from widelane.dispatcher.notifying import Notice, missed, notices, tell
from widelane.dispatcher.places import journal_path, lock_path, log_path
from widelane.dispatcher.schedule import due, run_end, settled
from widelane.dispatcher.worker import Worker
from widelane.errors import BusyError
from widelane.lanes.clock import SystemClock
from widelane.ledger import Journal
from widelane.ledger.events import Trouble

_LOOK_SECONDS = 0.1
_IDLE_SECONDS = 3.0
_MOST_DISPATCHES = 64
_MOST_TELLERS = 4
_log = logging.getLogger("widelane.supervisor")


def supervise(home: Path) -> int:
    """Hold the home's lock and serve until idle; 1 when another process holds it."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    supervisor = Supervisor(home, system_edge())
    while True:
        try:
            with hold(lock_path(home), f"the supervisor's place of {home}"):
                anyio.run(supervisor.serve)
        except BusyError as error:
            _log.warning("%s", error)
            return 1
        # A request may have come between the last look and giving the lock back.
        if not supervisor.has_work():
            return 0


class Supervisor:
    """Keeps one thread a live dispatch."""

    def __init__(self, home: Path, edge: Edge) -> None:
        self._home = home
        self._edge = edge
        self._active: set[str] = set()
        self._failed: set[str] = set()
        self._limiter = CapacityLimiter(_MOST_DISPATCHES)
        self._tellers = CapacityLimiter(_MOST_TELLERS)

    async def serve(self) -> None:
        """Return when nothing has been due for a while."""
        journal = Journal(journal_path(self._home), SystemClock())
        book = Book(journal)
        idle = 0.0
        try:
            async with anyio.create_task_group() as tasks:
                for notice in missed(journal):
                    tasks.start_soon(self._tell, notice)
                while idle < _IDLE_SECONDS:
                    for run_id, dispatch_id in self._ready(journal, book):
                        self._active.add(dispatch_id)
                        tasks.start_soon(self._work, run_id, dispatch_id)
                    for notice in notices(book.take_news()):
                        tasks.start_soon(self._tell, notice)
                    idle = 0.0 if self._active else idle + _LOOK_SECONDS
                    await anyio.sleep(_LOOK_SECONDS)
        finally:
            journal.close()

    def has_work(self) -> bool:
        """Whether a dispatch is due now."""
        journal = Journal(journal_path(self._home), SystemClock())
        try:
            return bool(self._ready(journal, Book(journal)))
        finally:
            journal.close()

    def _ready(self, journal: Journal, book: Book) -> list[tuple[str, str]]:
        """Dispatches whose turn it is and that no thread has; ends what is over on the way."""
        pages = book.live()
        moved = [_settle(journal, page) for page in pages]
        if any(moved):
            book.read_on()
            pages = book.live()
        taken = self._active | self._failed
        return [
            (page.run.run_id, dispatch_id)
            for page in pages
            for dispatch_id in due(page.run, page.after)
            if dispatch_id not in taken
        ]

    async def _tell(self, notice: Notice) -> None:
        await to_thread.run_sync(tell, journal_path(self._home), notice, limiter=self._tellers)

    async def _work(self, run_id: str, dispatch_id: str) -> None:
        try:
            await to_thread.run_sync(self._carry, run_id, dispatch_id, limiter=self._limiter)
        finally:
            self._active.discard(dispatch_id)

    def _carry(self, run_id: str, dispatch_id: str) -> None:
        journal = Journal(journal_path(self._home), SystemClock())
        try:
            case, work = open_case(journal, run_id, dispatch_id, self._edge)
            Worker(case, work).run()
        except Exception as error:  # noqa: BLE001 - one dispatch's fault must not take the others' supervisor along
            _log.exception("dispatch %s can't go on", dispatch_id)
            self._failed.add(dispatch_id)
            message = f"{type(error).__name__}: {error}"[:1000]
            trouble = Trouble(code="internal", message=message, hint=f"see {log_path(self._home)}")
            journal.append(run_id, trouble, dispatch_id)
        finally:
            journal.close()


def _settle(journal: Journal, page: Page) -> bool:
    """Write the ends that follow from others' ends; whether there were any."""
    ends = settled(page.run, page.after)
    for dispatch_id, end in ends:
        journal.append(page.run.run_id, end, dispatch_id)
    over = run_end(page.run)
    if over is not None:
        journal.append(page.run.run_id, over)
    return bool(ends) or over is not None
