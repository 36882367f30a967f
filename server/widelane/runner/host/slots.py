"""The slots of a host: one a GPU, or so many for CPU work. Who holds which."""

from __future__ import annotations

from .spec import Gpus


class Slots:
    """`handles` are the GPUs' names for CUDA; empty for CPU slots, which count only."""

    def __init__(self, handles: tuple[str, ...], cpu: int = 0) -> None:
        size = len(handles) or cpu
        self.handles = handles
        self.done = [0] * size
        self.holder = [""] * size

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.holder)

    @property
    def width(self) -> int:
        """Realized GPUs."""
        return len(self.handles)

    def need(self, gpus: Gpus) -> int:
        """Slots that a task takes: CPU work takes one, whatever it says of GPUs."""
        if gpus == "all":
            return self.size
        return max(1, int(gpus)) if self.handles else 1

    def free(self) -> list[int]:
        """Numbers of the free ones, lowest first."""
        return [slot for slot, holder in enumerate(self.holder) if not holder]

    def take(self, slots: tuple[int, ...], job: str) -> None:
        """Give them to a job."""
        for slot in slots:
            self.holder[slot] = job

    def give_back(self, slots: tuple[int, ...], done: bool) -> None:
        """Free again; `done` counts a unit that ran to its end."""
        for slot in slots:
            if slot < self.size:
                self.holder[slot] = ""
                self.done[slot] += int(done)

    def visible(self, slots: tuple[int, ...]) -> tuple[str, ...]:
        """The GPUs behind slots."""
        return tuple(self.handles[slot] for slot in slots) if self.handles else ()

    def rows(self) -> list[dict[str, object]]:
        """For progress.json."""
        kind = "" if self.handles else "cpu"
        return [
            {"gpu": f"{kind}{slot}", "done": self.done[slot], "running": self.holder[slot]} for slot in range(self.size)
        ]
