"""Lets coroutines wait for the next change of the cloud."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Changes:
    """`notify` wakes everyone who waits now."""

    def __init__(self) -> None:
        self._next = asyncio.Event()
        self._closed = False

    def close(self) -> None:
        """From now on nobody waits."""
        self._closed = True
        self.notify()

    def notify(self) -> None:
        """Something changed."""
        self._next.set()
        self._next = asyncio.Event()

    async def next(self) -> None:
        """Wait for the next change."""
        await self._next.wait()

    async def until(self, met: Callable[[], bool], seconds: float) -> bool:
        """Wait until `met` holds, real seconds at most and not beyond `close`; whether it does."""
        try:
            async with asyncio.timeout(seconds):
                while not met() and not self._closed:
                    await self._next.wait()
        except TimeoutError:
            pass
        return met()
