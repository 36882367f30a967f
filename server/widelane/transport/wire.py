"""One call over a process's stdin and stdout: request out, answer in, bounded by silence and not by size."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import select
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from widelane.transport.program import Program, preamble
from widelane.transport.remote.frame import BROKEN, CHUNK, LENGTH, Target, write_file, write_packet

_JUNK_LIMIT = 1 << 20


class SilenceError(TimeoutError):
    """Nothing moved for too long."""


class NoAnswerError(EOFError):
    """The line ended before the answer was complete."""


@dataclass(frozen=True, slots=True)
class Received:
    """A file of an answer. `error` says why the host couldn't send it to its end; then it is of no use."""

    path: Path
    sha256: str
    size: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer: `value`, or `error` (errno and message) when the host failed at it."""

    value: dict[str, Any]
    error: dict[str, Any] | None
    files: tuple[Received, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """One call: an entry of a program, what it is asked, files that go with it, and where those of the answer go."""

    program: Program
    entry: str
    asked: Mapping[str, Any]
    send: Sequence[Path | bytes] = ()
    into: Path | None = None


class Exchange:
    """One request over one process. `silence` is how many seconds may pass in which nothing moves."""

    def __init__(self, process: subprocess.Popen[bytes], request: Request, silence: float) -> None:
        self._process = process
        self._request = request
        self._silence = silence
        self._word = secrets.token_hex(16)
        self._moved = time.monotonic()
        self._buffer = bytearray()
        self._writer = threading.Thread(target=self._write, name="widelane-call", daemon=True)

    def run(self) -> Reply:
        """The answer.

        Raises:
            SilenceError: nothing moved for too long; the process may still run.
            NoAnswerError: the line ended before the answer was complete.
            OSError: a file of ours can't be read or written.
        """
        self._writer.start()
        return self._read()

    def end(self, seconds: float) -> int:
        """See the process end by itself within `seconds`, or end it; its exit code."""
        process = self._process
        if process.stdout is not None:
            process.stdout.close()
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if self._writer.ident is not None:
            self._writer.join()
        return code

    def _write(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None, "the process is started with pipes"
        target = _Moving(stdin, self)
        request = self._request
        head = {
            "word": self._word,
            "modules": request.program.sources(),
            "module": request.program.modules[-1],
            "entry": request.entry,
            "request": dict(request.asked),
        }
        # A host that has heard enough, or a line that is gone: the answer, or its absence, tells.
        with contextlib.suppress(OSError, ValueError), stdin:
            target.write(preamble())
            write_packet(target, json.dumps(head).encode())
            for file in request.send:
                write_file(target, file)

    def moved(self) -> None:
        """Something moved."""
        self._moved = time.monotonic()

    def _read(self) -> Reply:
        self._skip_to(f"\n{self._word}\n".encode())
        head = json.loads(self._packet())
        files = tuple(self._file(number) for number in range(head["files"]))
        return Reply(head.get("value") or {}, head.get("error"), files)

    def _skip_to(self, mark: bytes) -> None:
        """Leave out what login shells print."""
        while True:
            place = self._buffer.find(mark)
            if place >= 0:
                del self._buffer[: place + len(mark)]
                return
            if len(self._buffer) > _JUNK_LIMIT:
                raise NoAnswerError("it prints without end before it answers")
            self._more()

    def _file(self, number: int) -> Received:
        into = self._request.into
        path = into / str(number) if into is not None else Path(os.devnull)
        digest = hashlib.sha256()
        size = 0
        with path.open("wb") as target:
            for chunk in self._chunks():
                if isinstance(chunk, str):
                    return Received(path, "", size, chunk)
                digest.update(chunk)
                size += len(chunk)
                target.write(chunk)
        if self._exactly(32) != digest.digest():
            return Received(path, "", size, "damaged on its way")
        return Received(path, digest.hexdigest(), size)

    def _chunks(self) -> Iterator[bytes | str]:
        """The packets of a file; a text instead says why it ends there."""
        while True:
            (size,) = LENGTH.unpack(self._exactly(LENGTH.size))
            if size == BROKEN:
                yield str(json.loads(self._packet())["message"])
                return
            if size == 0:
                return
            yield self._exactly(size)

    def _packet(self) -> bytes:
        (size,) = LENGTH.unpack(self._exactly(LENGTH.size))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._more()
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _more(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None, "the process is started with pipes"
        while True:
            left = self._moved + self._silence - time.monotonic()
            if left <= 0:
                raise SilenceError(f"nothing came for {self._silence:g} s")
            if select.select([stdout], [], [], left)[0]:
                break
        data = os.read(stdout.fileno(), CHUNK)
        if not data:
            raise NoAnswerError("the line ended before the answer was complete")
        self.moved()
        self._buffer += data


class _Moving:
    """Passes bytes on and notes that they moved."""

    def __init__(self, target: Target, exchange: Exchange) -> None:
        self._target = target
        self._exchange = exchange

    def write(self, data: bytes) -> int:
        """Write all of it."""
        for start in range(0, len(data), CHUNK):
            self._target.write(data[start : start + CHUNK])
            self._exchange.moved()
        return len(data)
