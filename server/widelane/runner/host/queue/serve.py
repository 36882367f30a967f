"""The scheduler's process: the lock, the loop, and starting over after a failure of the disk."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sqlite3
import sys
import time
from pathlib import Path

from ..attempt import locked
from ..engine import Engine, EngineError
from ..loop import Loop, Stop
from .base import connect
from .book import Book
from .cardroom import CardRoom
from .desk import Desk
from .guard import Guard
from .orders import Orders
from .roll import Roll
from .scheduler import Scheduler

DONE, AGAIN, BUSY = 0, 1, 3
_LONGEST_PAUSE = 60.0
_PATIENCE = 3600.0
_LOCK_PATIENCE = 0.5


def serve(root: Path, runner: Path) -> int:
    """Run what there is to run; returns the exit code. Supervisors go on when this ends early."""
    root.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + _LOCK_PATIENCE
    while not _free(root) and time.monotonic() < deadline:
        time.sleep(0.02)
    with locked(root / "lock") as held:
        if held is None:
            sys.stderr.write(f"widelane: {root} is held by {holder(root) or 'another process'}\n")
            return BUSY
        os.ftruncate(held, 0)
        os.write(held, f"pid {os.getpid()} on {socket.gethostname()}\n".encode())
        return _persist(root, runner)


def _free(root: Path) -> bool:
    """Whether the lock could be had: those who only ask whether a scheduler lives hold it for an instant."""
    with locked(root / "lock") as held:
        return held is not None


def holder(root: Path) -> str:
    """Who wrote the lock last."""
    try:
        return (root / "lock").read_text(errors="replace").strip()
    except OSError:
        return ""


def _persist(root: Path, runner: Path) -> int:
    """A disk that is full may be emptied: start over with growing pauses, and take over what runs."""
    stop = Stop()
    pause, since = 0.5, time.monotonic()
    while True:
        begin = time.monotonic()
        try:
            _run(root, runner, stop)
            return DONE
        except (OSError, sqlite3.Error, EngineError) as error:
            sys.stderr.write(f"widelane: {type(error).__name__}: {error}\n")
        if time.monotonic() - begin > _LONGEST_PAUSE:
            pause, since = 0.5, time.monotonic()
        if stop.asked or time.monotonic() - since > _PATIENCE:
            return AGAIN
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def _run(root: Path, runner: Path, stop: Stop) -> None:
    with contextlib.ExitStack() as stack:
        db = connect(root)
        stack.callback(db.close)
        loop = Loop(stop)
        stack.callback(loop.close)
        book = Book(db)
        engine = Engine(loop, book, root, runner)
        stack.callback(engine.close)
        guard, room = Guard(loop, root), CardRoom(loop, book)
        stack.callback(guard.close)
        stack.callback(room.close)
        desk = Desk(root, loop, book, engine, Roll(book), room, guard)
        poke = Poke(root)
        stack.callback(poke.close)
        scheduler = Scheduler(desk)
        orders = Orders(desk, scheduler.take)

        def poked() -> None:
            poke.drain()
            orders.poked = True

        loop.watch(poke.fd, poked)
        scheduler.begin()

        def turn() -> bool:
            orders.carry_out()
            return scheduler.turn() or stop.asked

        loop.run(turn)


class Poke:
    """The reading end of a FIFO: a byte in it says that there is a command."""

    def __init__(self, root: Path) -> None:
        path = root / "poke"
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, 0o600)
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def drain(self) -> None:
        """Take all bytes out."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self.fd)


def poke(root: Path) -> bool:
    """Tell a scheduler that there is a command; False when none reads."""
    try:
        fd = os.open(root / "poke", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENOENT):
            return False
        raise
    try:
        os.write(fd, b"\0")
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return True
