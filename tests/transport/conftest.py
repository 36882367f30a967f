"""A real sshd, and hosts that are reached through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import sshd as fake
from tests.fakes.sshd import Sshd
from widelane.transport import HereLine, Host, SshLine


@pytest.fixture
def here() -> Host:
    """This machine without ssh: the same calls, quicker."""
    return Host("ssh.here", HereLine())


@pytest.fixture
def server(tmp_path: Path, own_world: Path) -> Iterator[Sshd]:
    missing = fake.missing()
    if missing:
        pytest.skip(missing)
    made = Sshd(tmp_path / "far")
    made.start()
    yield made
    made.end()


@pytest.fixture
def lines(server: Sshd, tmp_path: Path) -> Iterator[Callable[..., SshLine]]:
    """`lines()`: a line to the server; those that were made are closed at the end."""
    made: list[SshLine] = []

    def make(host: str = "box", home: Path | None = None, **more: Any) -> SshLine:
        made.append(SshLine("ssh.box", host, home or tmp_path / "near", config=server.config, **more))
        return made[-1]

    yield make
    for line in made:
        line.close()


@pytest.fixture
def line(lines: Callable[..., SshLine]) -> SshLine:
    return lines()


@pytest.fixture
def box(line: SshLine) -> Host:
    return Host("ssh.box", line)
