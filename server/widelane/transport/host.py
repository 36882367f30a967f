"""A host that can be asked: calls in Python, commands, files. Every failure comes as a lane's error."""

from __future__ import annotations

import errno
import hashlib
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from widelane.errors import LaneError, LaneUnknownError
from widelane.transport.line import Line, SshLine
from widelane.transport.program import BASICS
from widelane.transport.trouble import RefusedError, Sort, UnfitError, judge_ssh, last_words
from widelane.transport.wire import Exchange, NoAnswerError, Received, Reply, Request, SilenceError

SILENCE_SECONDS = 60.0
_END_SECONDS = 5.0
_NO_PYTHON = (126, 127)
_NEVER_CONNECTED = re.compile(r"^ssh: (?:connect to host|Could not resolve hostname) ", re.MULTILINE)
"""Said by an ssh that found no open connection and couldn't open its own."""


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ran on a host. `returncode` is None when it was ended for taking too long, or wasn't there."""

    returncode: int | None
    stdout: str
    stderr: str
    missing: str = ""
    """The program that isn't installed, or ""."""


class Host:
    """One host over one line. Every method blocks, may be called from any thread, and raises

    `LaneAuthError` (who we are, or who the host is), `UnreachedError` (nothing happened), `UnfitError` (no waiting
    helps), `RefusedError` (the host says that it failed), and `LaneUnknownError` (the line was lost, so it may or
    may not have happened).
    """

    def __init__(self, lane: str, line: Line) -> None:
        self._lane = lane
        self._line = line

    @property
    def target(self) -> str:
        """The host in words."""
        return self._line.target

    def call(self, request: Request, silence: float = SILENCE_SECONDS) -> dict[str, Any]:
        """Call an entry of a program; what it returned. `silence` bounds the time in which nothing moves."""
        return self.exchange(request, silence).value

    def exchange(self, request: Request, silence: float = SILENCE_SECONDS) -> Reply:
        """As `call`, with the files of the answer, which are in the folder `into` of the request."""
        with self._line.channel(), tempfile.TemporaryFile() as told:
            process = subprocess.Popen(
                self._line.command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
                cwd="/",
                start_new_session=True,
            )
            exchange = Exchange(process, request, silence)
            try:
                reply = exchange.run()
                exchange.end(_END_SECONDS)
            except SilenceError as error:
                exchange.end(0)
                self._line.suspect()
                message = f"{self.target} doesn't answer: {error}"
                raise LaneUnknownError(self._lane, message, code="connection_timeout") from error
            except NoAnswerError as error:
                code = exchange.end(_END_SECONDS)
                told.seek(0)
                raise self._judge(code, told.read().decode(errors="replace")) from error
            finally:
                exchange.end(0)
        if reply.error is not None:
            raise RefusedError(self._lane, f"{self.target}: {reply.error['message']}", int(reply.error["errno"]))
        return reply

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        seconds: float = 60.0,
    ) -> Ran:
        """Run a command there without a shell; what it takes longer than `seconds` is ended there."""
        asked = {"argv": list(argv), "stdin": stdin, "cwd": cwd, "env": dict(env or {}), "seconds": seconds}
        return Ran(**self.call(Request(BASICS, "run", asked), seconds + SILENCE_SECONDS))

    def put(self, source: Path | bytes, path: str, *, mode: int = 0o644) -> str:
        """Write a file there, whole or not at all, checked by its SHA-256, which is returned.

        `path` is absolute, from `~`, or relative to the home folder there; folders are made.
        """
        digest = hashlib.sha256(source).hexdigest() if isinstance(source, bytes) else ""
        asked = {"path": path, "sha256": digest, "mode": mode}
        return str(self.call(Request(BASICS, "put", asked, (source,)))["sha256"])

    def get(self, path: str, to: Path) -> str:
        """Fetch a file in place of `to`; its SHA-256. Raises FileNotFoundError when there is none."""
        with tempfile.TemporaryDirectory(prefix=".tmp-get-", dir=to.parent) as folder:
            (received,) = self._fetch([path], Path(folder))
            if received is None:
                raise FileNotFoundError(errno.ENOENT, f"not on {self.target}", path)
            received.path.replace(to)
            return received.sha256

    def read(self, paths: Iterable[str]) -> dict[str, bytes | None]:
        """Contents of small files there, None for those that aren't there."""
        names = list(paths)
        with tempfile.TemporaryDirectory(prefix="widelane-read-") as folder:
            found = self._fetch(names, Path(folder))
            return {
                name: None if file is None else file.path.read_bytes() for name, file in zip(names, found, strict=True)
            }

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files there; absence is success."""
        self.call(Request(BASICS, "remove", {"paths": list(paths)}))

    def greet(self) -> dict[str, Any]:
        """Who answers: `user`, `home`, `host`."""
        return self.call(Request(BASICS, "greet", {}))

    def close(self) -> None:
        """End the connection; what runs on the host goes on."""
        if isinstance(self._line, SshLine):
            self._line.close()

    def _fetch(self, paths: list[str], into: Path) -> list[Received | None]:
        reply = self.exchange(Request(BASICS, "get", {"paths": paths}, into=into))
        found: list[Received | None] = []
        places: list[int | None] = reply.value["places"]
        for place in places:
            received = None if place is None else reply.files[place]
            if received is not None and received.error:
                raise RefusedError(self._lane, f"{self.target}: {received.error}")
            found.append(received)
        return found

    def _judge(self, code: int | None, said: str) -> LaneError:
        """Why there is no answer. Only ssh itself ends with 255 here: the far end answers, or ends with 1."""
        words = last_words(said)
        if code in _NO_PYTHON or "widelane needs Python" in said:
            return UnfitError(self._lane, f"{self.target}: {words or 'there is no Python 3.9'}", hint=_PYTHON_HINT)
        if "Traceback (most recent call last)" in said:
            return RefusedError(self._lane, f"{self.target}: {words}")
        if code == 255:
            self._line.suspect()
            trouble = judge_ssh(said)
            if isinstance(self._line, SshLine) and (trouble.sort is Sort.AUTH or _NEVER_CONNECTED.search(said)):
                return self._line.failure(said)
            message = f"the connection to {self.target} was lost: {trouble.message}"
            return LaneUnknownError(self._lane, message, code="connection_lost")
        if code in (0, 1):
            return UnfitError(self._lane, f"{self.target} runs something else than Python: {words}", hint=_PYTHON_HINT)
        return LaneUnknownError(self._lane, f"the call on {self.target} ended with {code}: {words}", code="call_ended")


_PYTHON_HINT = "`ssh HOST python3 --version` must say 3.9 or newer; name another one with `python`"
