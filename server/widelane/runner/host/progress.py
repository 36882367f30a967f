"""progress.json: at most every half second, and only when something changed."""

from __future__ import annotations

import json
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

from .loop import Loop
from .store import Store

PAUSE = 0.5


class Reporter:
    """Writes beside the host's state and to the store, from a thread of its own; a failure only costs news."""

    def __init__(self, loop: Loop, store: Store, key: str, local: Path) -> None:
        self._loop = loop
        self._store = store
        self._key = key
        self._local = local
        self._thread = ThreadPoolExecutor(1, "progress")
        self._wanted: Optional[dict[str, Any]] = None
        self._written: Optional[dict[str, Any]] = None
        self._waiting = False
        self._complained = False

    def tell(self, progress: dict[str, Any]) -> None:
        """The news; written now or when the pause is over."""
        self._wanted = progress
        if not self._waiting:
            self._write()

    def finish(self) -> None:
        """Write what is left and wait for it."""
        self._write()
        self._thread.shutdown(wait=True)

    def close(self) -> None:
        """Let the thread go."""
        self._thread.shutdown(wait=True)

    def _write(self) -> None:
        self._waiting = False
        if self._wanted == self._written or self._wanted is None:
            return
        self._written = self._wanted
        data = json.dumps(self._written).encode()
        self._thread.submit(self._publish, data).add_done_callback(self._complain)
        self._waiting = True
        self._loop.after(PAUSE, self._write)

    def _publish(self, data: bytes) -> None:
        temp = self._local.with_name(self._local.name + ".new")
        temp.write_bytes(data)
        temp.replace(self._local)
        self._store.put(self._key, data, durable=False)

    def _complain(self, done: Future[None]) -> None:
        error = done.exception()
        if error is not None and not self._complained:
            self._complained = True
            sys.stderr.write(f"widelane: progress isn't published: {error}\n")
