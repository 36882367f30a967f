"""The host's cards as the scheduler sees them: counted when first needed, sampled only while somebody waits."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import Callable, Optional

from .. import processes
from ..devices import Census, count
from ..loop import Loop
from .book import Book
from .cards import Answer, Cards, Gate, Want
from .sampler import Sample, Sampler, owner

_MARK = b"WIDELANE_ATTEMPT="
_GRACE = 10.0


@dataclass(frozen=True)
class Lack:
    """Cards that this host will never have for a job; `host` when it has none for anybody."""

    why: str
    host: bool


class CardRoom:
    """Leases, and the readings behind them."""

    def __init__(self, loop: Loop, book: Book) -> None:
        self._loop = loop
        self._book = book
        self._cards: Optional[Cards] = None
        self._trouble = ""
        self._counting = False
        self._closed = False
        self._sampler = Sampler(loop, self._read)
        self._told: dict[int, float] = {}
        self._waiting: list[Callable[[Sample], None]] = []
        self.on_count: Callable[[int], None] = lambda _: None

    @property
    def known(self) -> Optional[Cards]:
        """The cards, None while they aren't counted."""
        return self._cards

    def ask(self, want: Want, gate: Gate) -> Optional[Answer | Lack]:
        """Cards for a job, why not now, or why never; None while the cards are being counted."""
        if self._cards is None:
            self.count()
            return None
        if self._trouble:
            return Lack(f"no GPU on this host: {self._trouble}", host=True)
        able = self._cards.eligible(want, gate)
        if len(able) < want.gpus:
            return Lack(f"it asks for {want.gpus} GPUs; of this host {len(able)} would do", host=False)
        answer = self._cards.choose(want, gate, time.monotonic())
        if answer.sample is not None:
            self._sampler.ask(answer.sample)
        return answer

    def clean(self, gate: Gate) -> str:
        """Why the cards of a run aren't at rest: read as free, and settled. "" when they are."""
        if gate.free_mib is None or not self._cards or self._trouble:
            return ""
        whole = Want(1, None, exclusive=True, min_total_mib=0, name="")
        idle = [card for card in self._cards.eligible(whole, gate) if not card.leases]
        everyone = Want(len(idle), None, exclusive=True, min_total_mib=0, name="")
        if not idle:
            return ""
        answer = self._cards.choose(everyone, gate, time.monotonic())
        if answer.sample is not None:
            self._sampler.ask(answer.sample)
        return "" if answer.cards else answer.why

    def others(self, handles: tuple[str, ...], then: Callable[[int], None]) -> None:
        """Read what others hold of cards now, in MiB: the most of any of them. Nothing that can be read is 0."""

        def arrived(sample: Sample) -> None:
            leased = {handle: card.leased() for handle, card in (self._cards.cards if self._cards else {}).items()}
            then(max((max(0, (sample.used.get(handle) or 0) - leased.get(handle, 0)) for handle in handles), default=0))

        self._waiting.append(arrived)
        self._sampler.ask(0.0)

    def take(self, attempt: int, handles: tuple[str, ...], mib: Optional[int]) -> None:
        """Lease cards."""
        if self._cards is not None:
            self._cards.take(attempt, handles, mib)

    def give_back(self, attempt: int) -> None:
        """A lease is over."""
        if self._cards is not None:
            self._cards.give_back(attempt, time.monotonic())

    def rows(self) -> list[dict[str, object]]:
        """Cards for `status`."""
        cards = self._cards.cards.values() if self._cards else ()
        return [{"gpu": card.gpu.index, "handle": card.handle, "used_mib": card.used()} for card in cards]

    def recount(self) -> None:
        """Count again, when there was trouble."""
        if self._trouble:
            self._cards, self._trouble = None, ""

    def count(self) -> None:
        """Have the cards counted, in a thread: a driver may take its time."""
        if self._counting or self._cards is not None:
            return
        self._counting = True

        def work() -> None:
            census = count(os.environ)
            if not self._closed:
                self._loop.post(lambda: self._counted(census))

        threading.Thread(target=work, name="census", daemon=True).start()

    def close(self) -> None:
        """Answers that come later are dropped."""
        self._closed = True
        self._sampler.close()

    def _counted(self, census: Census) -> None:
        self._counting = False
        self._cards, self._trouble = Cards(census.gpus), census.trouble
        for attempt, leases in self._book.leases().items():
            for handle, mib in leases:
                self._cards.take(attempt, (handle,), mib)
        self.on_count(len(census.gpus))

    def _read(self, sample: Sample) -> None:
        if self._cards is not None:
            foreign: dict[str, str] = {}
            for uuid, pids in sample.pids.items():
                strangers = [owner(pid) for pid, _ in pids if not self._is_ours(pid)]
                if strangers:
                    foreign[uuid] = ", ".join(strangers[:3])
            self._cards.read(sample.at, sample.used, foreign)
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then(sample)

    def _is_ours(self, pid: int) -> bool:
        """Whether one of our attempts started it. What an attempt that is over left is ended: TERM, a grace, KILL."""
        nonce = processes.mark(pid, _MARK)
        if nonce is None:
            return False
        row = self._book.db.execute("select state from attempt where nonce = ?", (nonce,)).fetchone()
        if row is not None and row[0] != "open":
            now = time.monotonic()
            since = self._told.setdefault(pid, now)
            processes.signal_all([pid], signal.SIGKILL if now - since >= _GRACE else signal.SIGTERM)
        return row is not None
