"""What every test gets: a world of its own, no way out to the network, and no process left behind."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import guards

ROOT = Path(__file__).resolve().parent.parent

os.environ.setdefault(guards.RUN_MARK, uuid.uuid4().hex)
_network = guards.NetworkGuard()
_network.watch()


@pytest.fixture(scope="session")
def repo() -> Path:
    """The root of the checkout."""
    return ROOT


@pytest.fixture(autouse=True)
def own_world(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A home, a WIDELANE_HOME and an environment that hold nothing of this machine's.

    Fails the test when it talked to the outside or left a process behind. Its value is the home folder.
    """
    home = tmp_path_factory.mktemp("home")
    for name in guards.foreign_variables():
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("WIDELANE_HOME", str(home / "widelane"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
    # google-auth would otherwise look for a metadata server before it says that there are no credentials.
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    mark = uuid.uuid4().hex
    monkeypatch.setenv(guards.TEST_MARK, mark)
    before = guards.pids()
    _network.refused.clear()

    yield home

    marks = [mark, str(home)]
    folder = request.node.funcargs.get("tmp_path")
    if folder is not None:
        marks.append(str(folder))
    found = guards.left_behind(marks, before)
    words = [guards.describe(pid) for pid in found]
    guards.kill(found)
    assert not words, f"left running: {words}"
    assert not _network.refused, f"talked to the outside: {_network.refused}"


@pytest.fixture(scope="session")
def eventually() -> Callable[..., None]:
    """`eventually(seen, within=10.0)`: returns as soon as `seen()` is true, fails when it isn't in time."""

    def wait(seen: Callable[[], object], within: float = 10.0) -> None:
        deadline = time.monotonic() + within
        while not seen():
            assert time.monotonic() < deadline, f"not seen within {within} s: {seen}"
            time.sleep(0.01)

    return wait


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fails the run when a process of it is still there, or, under CI, when a test was skipped."""
    config = session.config
    if hasattr(config, "workerinput"):
        return
    faults: list[str] = []
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", ())) if reporter else 0
    if skipped and os.environ.get("CI"):
        faults.append(f"{skipped} skipped under CI: see the reasons above, and .ci/setup for what it installs")
    found = guards.left_behind([os.environ[guards.RUN_MARK]], set())
    faults += [f"left running at the end: {guards.describe(pid)}" for pid in found]
    guards.kill(found)
    if faults and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    config.stash[_faults] = faults


_faults = pytest.StashKey[list[str]]()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Says why the run failed, last, where it is seen."""
    for fault in config.stash.get(_faults, []):
        print(f"ERROR: {fault}")
