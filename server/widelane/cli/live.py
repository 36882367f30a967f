"""The live view of a run on a terminal: events scroll by above, units and GPUs stand below."""

from __future__ import annotations

from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from widelane.models.dispatch import RunEvent, RunStatus
from widelane.reports.narrate import Narrator
from widelane.reports.paper import Paper
from widelane.reports.status import progress_lines


class LiveView:
    """A sink for `watch.follow`, used as a context manager; leaves only the event lines behind."""

    def __init__(self, stream: TextIO, paper: Paper) -> None:
        self._paper = paper
        self._narrator = Narrator(paper)
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._live.stop()

    def event(self, event: RunEvent) -> None:
        """Let the event's line scroll by."""
        for line in self._narrator.lines(event):
            self._console.print(Text.from_ansi(line))

    def status(self, status: RunStatus) -> None:
        """Redraw what is under way, as far as it fits on the screen."""
        lines = progress_lines(status, self._paper)
        room = max(self._console.height - 2, 3)
        if len(lines) > room:
            lines = [*lines[: room - 1], f"    and {len(lines) - room + 1} more"]
        self._live.update(Text.from_ansi("\n".join(lines)))
