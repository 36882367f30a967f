"""Where a cluster's commands run: its login host."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from widelane.errors import LaneUnknownError

HERE = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names under which the login host is this machine."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to. `code` is its own exit code."""

    code: int
    out: str
    err: str


class Shell(Protocol):
    """Runs a POSIX shell on the login host. Safe to share between threads."""

    @property
    def here(self) -> bool:
        """Whether that is this machine."""
        ...

    def run(self, script: str, seconds: float) -> Ran:
        """Run `sh -s` with the script on its standard input.

        Raises:
            LaneAuthError: the login is missing or has expired.
            LaneUnknownError: no answer, or only a part of one; the script may have run, and may still run.
        """
        ...


class LocalShell:
    """This machine as login host."""

    def __init__(self, lane: str, env: Mapping[str, str]) -> None:
        self._lane = lane
        self._env = env

    @property
    def here(self) -> bool:
        """It is."""
        return True

    def run(self, script: str, seconds: float) -> Ran:
        """Run it in a session of its own: it ends what it began, also when this process is killed."""
        try:
            done = subprocess.run(
                ["/bin/sh", "-s"],
                input=script.encode(),
                capture_output=True,
                env=dict(self._env),
                timeout=seconds,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise LaneUnknownError(self._lane, f"no answer within {seconds:g} s") from error
        except OSError as error:
            raise LaneUnknownError(self._lane, f"no shell could be started: {error}") from error
        return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))
