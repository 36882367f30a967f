"""Which cards a job may have now: leases, memory that others hold, and whether readings have settled. Pure."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Optional

from ..devices import Gpu

WINDOW = 5.0
"""Seconds between two samples that may still count together."""
UNREADABLE = "its memory can't be read"


@dataclass(frozen=True)
class Gate:
    """A run's rules. `free_mib` None: no memory gate."""

    free_mib: Optional[int]
    samples: int
    seconds: float
    headroom_mib: int
    allowed: Optional[tuple[str, ...]]
    """Indices or UUIDs; None is all."""

    @classmethod
    def of(cls, spec: dict[str, Any]) -> Gate:
        """From a run's spec."""
        settle, cards = spec["settle"], spec["gpus"]
        allowed = None if cards is None else tuple(str(card) for card in cards)
        return cls(spec["gpu_free_mib"], settle["samples"], settle["seconds"], spec["headroom_mib"], allowed)


@dataclass(frozen=True)
class Want:
    """What a job asks of cards. `mib` None: whole cards."""

    gpus: int
    mib: Optional[int]
    exclusive: bool
    min_total_mib: int
    name: str

    @classmethod
    def of(cls, job: dict[str, Any]) -> Want:
        """From a job's spec."""
        select = job["gpu_select"]
        whole = job["exclusive"] or job["gpu_mem_mib"] is None
        total, name = select.get("min_total_mib", 0), select.get("name", "")
        return cls(job["gpus"], None if whole else job["gpu_mem_mib"], bool(job["exclusive"]), total, name)


@dataclass
class Card:
    """One card, who holds it, and what was read. `readings` are (time, MiB used by anyone or None)."""

    gpu: Gpu
    leases: dict[int, Optional[int]] = field(default_factory=dict[int, Optional[int]])
    freed_at: float = float("-inf")
    readings: collections.deque[tuple[float, Optional[int]]] = field(
        default_factory=lambda: collections.deque(maxlen=8)
    )
    foreign: str = ""
    """Processes of others, for people."""

    @property
    def handle(self) -> str:
        """Its name for CUDA."""
        return self.gpu.handle

    def used(self) -> Optional[int]:
        """The newest reading."""
        return self.readings[-1][1] if self.readings else None

    def leased(self) -> int:
        """MiB that our jobs were promised; a whole lease isn't counted."""
        return sum(mib or 0 for mib in self.leases.values())


@dataclass(frozen=True)
class Answer:
    """Cards for a job, or why there are none. `sample`: seconds until a reading may change that, None: it can't."""

    cards: tuple[str, ...] = ()
    why: str = ""
    sample: Optional[float] = None
    busy: bool = False
    """Our own jobs hold what is missing."""


class Cards:
    """The cards of the host."""

    def __init__(self, gpus: Iterable[Gpu]) -> None:
        self.cards = {gpu.handle: Card(gpu) for gpu in gpus}

    def take(self, attempt: int, handles: Iterable[str], mib: Optional[int]) -> None:
        """Lease cards to an attempt."""
        for handle in handles:
            if handle in self.cards:
                self.cards[handle].leases[attempt] = mib

    def give_back(self, attempt: int, now: float) -> None:
        """The attempt and all it started are gone."""
        for card in self.cards.values():
            if attempt in card.leases:
                del card.leases[attempt]
                card.freed_at = now

    def read(self, now: float, used: dict[str, Optional[int]], foreign: dict[str, str]) -> None:
        """Keep a sample. A card that isn't in it can't be read."""
        for handle, card in self.cards.items():
            card.readings.append((now, used.get(handle)))
            card.foreign = foreign.get(handle, "")

    def eligible(self, want: Want, gate: Gate) -> list[Card]:
        """Cards that would do if they were free."""
        found: list[Card] = []
        for card in self.cards.values():
            gpu = card.gpu
            named = gate.allowed is None or str(gpu.index) in gate.allowed or gpu.uuid in gate.allowed
            large = not want.min_total_mib or (gpu.memory_mib or 0) >= want.min_total_mib
            if named and large and want.name.lower() in gpu.name.lower():
                found.append(card)
        return found

    def choose(self, want: Want, gate: Gate, now: float) -> Answer:
        """Cards for a job: the lowest that are open; for a share of a card the fullest first."""
        able = self.eligible(want, gate)
        if want.mib is not None:
            able.sort(key=lambda card: -card.leased())
        open_cards: list[str] = []
        shut: list[Answer] = []
        for card in able:
            answer = self._ask(card, want, gate, now)
            if not answer.why:
                open_cards.append(card.handle)
                if len(open_cards) == want.gpus:
                    return Answer(tuple(open_cards))
            else:
                shut.append(answer)
        waits = [answer.sample for answer in shut if answer.sample is not None]
        why = "; ".join(answer.why for answer in shut) or "no card"
        busy = sum(answer.busy for answer in shut) + len(open_cards) >= want.gpus
        return Answer((), why, min(waits) if waits else None, busy)

    def _ask(self, card: Card, want: Want, gate: Gate, now: float) -> Answer:
        """Whether one card is open; `why` is "" when it is."""
        name = f"GPU {card.gpu.index}"
        if any(mib is None for mib in card.leases.values()) or (card.leases and want.mib is None):
            return Answer(why=f"{name}: in use by this queue", busy=True)
        if gate.free_mib is None and want.mib is None:
            return Answer()
        wait = settled(card, gate, now)
        if wait is not None:
            return Answer(why=f"{name}: its memory is being read", sample=wait)
        return self._memory(card, want, gate, name)

    def _memory(self, card: Card, want: Want, gate: Gate, name: str) -> Answer:
        recent = _recent(card, gate)
        if any(used is None for used in recent):
            return Answer(why=f"{name}: {UNREADABLE}", sample=gate.seconds)
        used = max(int(one or 0) for one in recent)
        whose = f", held by {card.foreign}" if card.foreign else ""
        if want.mib is None:
            if used <= (gate.free_mib or 0):
                return Answer()
            why = f"{name}: {used} MiB used{whose}, more than {gate.free_mib}"
            return Answer(why=why, sample=gate.seconds)
        if card.gpu.memory_mib is None:
            return Answer(why=f"{name}: its size isn't known", sample=None)
        others = max(0, used - card.leased())
        room = card.gpu.memory_mib - gate.headroom_mib - card.leased() - others
        if want.mib <= room:
            return Answer()
        why = f"{name}: {room} MiB left of {card.gpu.memory_mib}{whose}, {want.mib} wanted"
        return Answer(why=why, sample=gate.seconds if others else None, busy=bool(card.leases))


def _recent(card: Card, gate: Gate) -> list[Optional[int]]:
    """The samples that decide: the newest, and back to the first that is old enough."""
    newest = card.readings[-1][0]
    found: list[Optional[int]] = []
    for at, used in reversed(card.readings):
        found.append(used)
        if len(found) >= gate.samples and newest - at >= gate.seconds:
            break
    return found


def settled(card: Card, gate: Gate, now: float) -> Optional[float]:
    """None when there are readings to decide by, else seconds until the next one is worth taking."""
    fresh = [at for at, _ in card.readings if now - at <= WINDOW]
    if not fresh or fresh[-1] < card.freed_at:
        return 0.0
    if len(fresh) < gate.samples or fresh[-1] - fresh[0] < gate.seconds:
        return max(0.0, gate.seconds - (now - fresh[-1]))
    return None
