"""The live runs of a home as a supervisor keeps them: folded once, carried on by what is new in the journal."""

from __future__ import annotations

from dataclasses import dataclass

from widelane.dispatcher.assembly import after_of
from widelane.ledger import Journal, Recorded, RunState, fold


@dataclass(slots=True)
class Page:
    """One run. `after` gives the phases that each of its phases waits for."""

    run: RunState
    after: dict[str, tuple[str, ...]]


class Book:
    """Every live run of a journal. Asking it while nothing changed costs next to nothing."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._version = -1
        self._seq = 0
        self._pages: dict[str, Page] = {}
        self._news: list[tuple[RunState, Recorded]] = []

    def live(self) -> tuple[Page, ...]:
        """The live runs, oldest first, as of now."""
        version = self._journal.data_version()
        if self._version == -1:
            self._open()
        elif version != self._version:
            self.read_on()
        self._version = version
        return tuple(self._pages.values())

    def _open(self) -> None:
        self._seq = self._journal.last_seq()
        for run_id in self._journal.live_runs():
            run = fold(self._journal.events(run_id))
            self._pages[run_id] = Page(run, after_of(run))

    def read_on(self) -> None:
        """Fold in what is new, also what this connection wrote itself."""
        for record in self._journal.events_after(self._seq):
            self._seq = record.seq
            page = self._pages.get(record.run_id)
            if page is None:
                if record.event.kind == "run_requested":
                    run = fold([record])
                    self._pages[record.run_id] = Page(run, after_of(run))
            elif record.seq > page.run.last_seq:
                fold([record], page.run)
                self._news.append((page.run, record))
                if page.run.ended is not None:
                    del self._pages[record.run_id]

    def take_news(self) -> list[tuple[RunState, Recorded]]:
        """What was folded in since it was last asked, each with its run as it is now."""
        news, self._news = self._news, []
        return news
