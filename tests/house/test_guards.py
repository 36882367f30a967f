"""The guards of the suite see what they are for."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests import guards


@pytest.fixture
def sleeper(tmp_path: Path):
    """A process in `tmp_path` that ends when its input closes."""
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env={}) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process


def test_a_process_in_a_tests_folder_is_seen_even_with_an_empty_environment(sleeper, tmp_path: Path):
    found = guards.left_behind([str(tmp_path)], set(), grace=0)
    assert sleeper.pid in found
    assert str(sleeper.pid) in guards.describe(sleeper.pid)


def test_a_process_that_was_there_before_is_not_blamed(sleeper, tmp_path: Path):
    assert guards.left_behind([str(tmp_path)], guards.pids(), grace=0) == []


def test_a_killed_process_is_no_longer_seen(sleeper, tmp_path: Path):
    guards.kill([sleeper.pid])
    assert guards.left_behind([str(tmp_path)], set()) == []


def test_a_look_up_of_another_host_is_refused_and_remembered():
    guard = guards.NetworkGuard()
    with pytest.raises(PermissionError, match="example"):
        guard.hear("socket.getaddrinfo", ("example.org", 443))
    assert guard.refused == ["socket.getaddrinfo 'example.org'"]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "localhost", "::1", "", None, b"localhost"])
def test_this_machine_may_be_talked_to(host: object):
    guard = guards.NetworkGuard()
    guard.hear("socket.connect", (socket.socket, (host, 80)))
    assert not guard.refused


def test_every_test_has_a_home_of_its_own(own_world: Path):
    assert os.environ["HOME"] == str(own_world)
    assert not list(own_world.iterdir())


def test_no_cloud_setting_of_this_machine_reaches_a_test():
    assert set(guards.foreign_variables()) == {"WIDELANE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
