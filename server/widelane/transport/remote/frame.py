"""The frame of a call on the host: read a request, install the modules that came with it, answer.

In come packets (4 bytes of length, then that many bytes): a head in JSON, then files. Out goes a line with the
call's own word, which nothing that a login shell prints can imitate, then packets: a head in JSON, then files.
A file is packets until an empty one, then its SHA-256; a packet of the length `BROKEN` says why it ends early.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

NAME = "widelane.transport.remote.frame"
LENGTH = struct.Struct(">I")
BROKEN = 0xFFFFFFFF
CHUNK = 1 << 18


class CutError(EOFError):
    """The line ended in the middle."""


class Source(Protocol):
    """Anything to read bytes from."""

    def read(self, size: int, /) -> bytes:
        """So many bytes, fewer only at the end."""
        ...


class Target(Protocol):
    """Anything to write bytes to."""

    def write(self, data: bytes, /) -> int:
        """Write all of it."""
        ...


class Call:
    """One call as a program sees it: what is asked, files that came with it, files to answer with."""

    def __init__(self, request: dict[str, Any], source: Source, sources: dict[str, str]) -> None:
        self.request = request
        self.sources = sources
        """Texts of the modules that came with the call, and of this one."""
        self.answers: list[Path | bytes] = []
        self._source = source

    def receive(self, target: Target) -> str:
        """Write the next file that came with the call; its SHA-256. Raises `CutError`, OSError when it is damaged."""
        digest = hashlib.sha256()
        while True:
            chunk = packet(self._source)
            if not chunk:
                break
            digest.update(chunk)
            target.write(chunk)
        if exactly(self._source, 32) != digest.digest():
            raise OSError(5, "a file was damaged on its way")
        return digest.hexdigest()

    def send(self, file: Path | bytes) -> int:
        """Answer with a file too; its place among those of the answer."""
        self.answers.append(file)
        return len(self.answers) - 1


def exactly(source: Source, size: int) -> bytes:
    """So many bytes. Raises `CutError`."""
    data = source.read(size)
    if len(data) < size:
        raise CutError("the line ended in the middle")
    return data


def packet(source: Source) -> bytes:
    """The next packet. Raises `CutError`."""
    (size,) = LENGTH.unpack(exactly(source, LENGTH.size))
    return exactly(source, size)


def write_packet(target: Target, data: bytes) -> None:
    """One packet."""
    target.write(LENGTH.pack(len(data)))
    target.write(data)


def write_file(target: Target, file: Path | bytes) -> None:
    """A file in packets; what can't be read to its end ends with a word about it."""
    digest = hashlib.sha256()
    try:
        for chunk in _chunks(file):
            digest.update(chunk)
            write_packet(target, chunk)
    except OSError as error:
        target.write(LENGTH.pack(BROKEN))
        write_packet(target, json.dumps(told(error)).encode())
        return
    write_packet(target, b"")
    target.write(digest.digest())


def _chunks(file: Path | bytes) -> Iterator[bytes]:
    if isinstance(file, bytes):
        for start in range(0, len(file), CHUNK):
            yield file[start : start + CHUNK]
        return
    with file.open("rb") as source:
        while True:
            chunk = source.read(CHUNK)
            if not chunk:
                return
            yield chunk


def told(error: OSError | ValueError) -> dict[str, Any]:
    """A failure of this host as the answer has it."""
    name = getattr(error, "filename", None)
    text = str(getattr(error, "strerror", None) or error)
    return {"errno": getattr(error, "errno", None) or 0, "message": f"{name}: {text}" if name else text}


def install(modules: list[list[str]]) -> None:
    """Make modules importable from their sources, under their own names, in the order given."""
    sys.modules[NAME] = sys.modules["__main__"]
    for name, source in modules:
        parts = name.split(".")
        for depth in range(1, len(parts)):
            above = ".".join(parts[:depth])
            if above not in sys.modules:
                package = types.ModuleType(above)
                package.__path__ = []
                sys.modules[above] = package
        module = types.ModuleType(name)
        module.__dict__["__package__"] = name.rpartition(".")[0]
        sys.modules[name] = module
        exec(compile(source, f"<{name}>", "exec"), module.__dict__)


def serve() -> int:
    """Answer the one call on stdin."""
    source = sys.stdin.buffer
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything here prints is no part of the answer
    head = json.loads(packet(source))
    call = Call(head["request"], source, dict(head["modules"]))
    try:
        install(head["modules"])
        value = {"value": getattr(sys.modules[head["module"]], head["entry"])(call)}
    except (OSError, ValueError) as error:
        value, call.answers = {"error": told(error)}, []
    except EOFError:
        return 1
    answer.write(f"\n{head['word']}\n".encode())
    write_packet(answer, json.dumps({**value, "files": len(call.answers)}).encode())
    for file in call.answers:
        write_file(answer, file)
    answer.close()
    return 0


if __name__ == "__main__":
    sys.exit(serve())
