"""Connections to a real sshd: who may, who is it, and what a line that breaks means."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.sshd import Sshd, make_key
from widelane.errors import ConfigError, LaneAuthError, LaneUnknownError
from widelane.transport import Host, Request, SshLine, UnfitError, UnreachedError
from widelane.transport.program import BASICS

pytestmark = pytest.mark.slow

Eventually = Callable[..., None]
WAITING = "touch began; while [ ! -e go ]; do sleep 0.02; done; touch done"
NOISE = "echo welcome; printf '{\"value\": {}}\\n'; printf 'no newline'\n"


def test_a_command_runs_over_ssh_and_its_255_is_its_own(box: Host, server: Sshd) -> None:
    assert box.run(["sh", "-c", "exit 255"]).returncode == 255
    assert box.greet()["home"] == str(server.home)


def test_what_a_login_shell_prints_is_no_part_of_an_answer(box: Host, server: Sshd) -> None:
    for name in (".bashrc", ".zshenv", ".profile"):
        (server.home / name).write_text(NOISE)
    assert box.run(["echo", "heard"]).stdout == "heard\n"


def test_files_go_both_ways_over_ssh(box: Host, server: Sshd, tmp_path: Path) -> None:
    data = os.urandom(2_000_000)
    sha256 = box.put(data, "deep/file")
    assert (server.home / "deep" / "file").read_bytes() == data
    assert box.get("deep/file", tmp_path / "back") == sha256
    assert (tmp_path / "back").read_bytes() == data


def test_calls_share_one_connection(box: Host, server: Sshd, line: SshLine) -> None:
    threads = [threading.Thread(target=box.greet) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.said().count("Accepted publickey") == 1
    assert (line.socket.parent.stat().st_mode & 0o777) == 0o700


def test_an_unknown_host_is_not_talked_to(box: Host, server: Sshd) -> None:
    server.known_hosts.write_text("")
    with pytest.raises(LaneAuthError) as told:
        box.greet()
    assert told.value.code == "login_needed"
    assert "fingerprint" in told.value.hint
    assert "ssh -F" in told.value.hint
    assert server.known_hosts.read_text() == ""


def test_a_user_who_trusts_every_host_is_not_followed(box: Host, server: Sshd) -> None:
    server.known_hosts.write_text("")
    server.write_config(StrictHostKeyChecking="no")
    with pytest.raises(LaneAuthError):
        box.greet()
    assert "Accepted" not in server.said()


def test_a_host_whose_key_changed_is_not_talked_to_and_the_way_out_is_told(box: Host, server: Sshd) -> None:
    server.trust("other_host")
    with pytest.raises(LaneAuthError) as told:
        box.greet()
    assert told.value.code == "login_needed"
    assert "ssh-keygen -f" in told.value.hint
    assert "set up anew" in told.value.hint


def test_a_key_that_the_host_does_not_know_needs_a_login(box: Host, server: Sshd) -> None:
    server.write_config("stranger")
    with pytest.raises(LaneAuthError, match="Permission denied") as told:
        box.greet()
    assert told.value.code == "login_needed"


def test_a_key_with_a_passphrase_is_not_asked_for(box: Host, server: Sshd) -> None:
    make_key(server.folder / "locked")
    change = ["ssh-keygen", "-q", "-p", "-N", "secret", "-P", "", "-f", str(server.folder / "locked")]
    subprocess.run(change, check=True, capture_output=True)
    (server.folder / "authorized_keys").write_text((server.folder / "locked.pub").read_text())
    server.write_config("locked")
    with pytest.raises(LaneAuthError):
        box.greet()


def test_a_login_by_hand_serves_the_calls_that_follow(box: Host, server: Sshd, line: SshLine) -> None:
    server.write_config("stranger")
    with pytest.raises(LaneAuthError) as told:
        box.greet()
    command = told.value.hint.split("`")[1]
    server.write_config("user")
    assert line.login() == command
    quiet = subprocess.DEVNULL
    subprocess.run(shlex.split(command), check=True, stdin=quiet, stdout=quiet, stderr=quiet, timeout=30)
    server.write_config("stranger")
    assert box.greet()["home"] == str(server.home)


def test_a_host_that_is_down_was_never_reached(box: Host, server: Sshd) -> None:
    server.stop()
    with pytest.raises(UnreachedError, match="refused") as told:
        box.greet()
    assert told.value.code == "unreachable"


def test_a_host_that_says_nothing_was_never_reached(
    lines: Callable[..., SshLine], server: Sshd, eventually: Eventually
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server.write_config(Port=str(silent.getsockname()[1]))
        server.config.write_text(server.config.read_text().replace(f"  Port {server.port}\n", ""))
        with pytest.raises(UnreachedError):
            Host("ssh.box", lines(connect_seconds=1)).greet()


def test_a_configuration_that_ssh_cannot_read_is_told(box: Host, server: Sshd) -> None:
    server.config.write_text("Host box\n  NoSuchOption yes\n")
    with pytest.raises(UnfitError, match=r"(?i)nosuchoption"):
        box.greet()


@pytest.mark.parametrize("python", ["no-such-python", "/bin/false", "true", "echo"])
def test_a_host_without_python_is_told_and_what_is_needed(lines: Callable[..., SshLine], python: str) -> None:
    with pytest.raises(UnfitError) as told:
        Host("ssh.box", lines(python=python)).greet()
    assert "3.9" in told.value.hint


def test_an_old_python_says_so_itself(lines: Callable[..., SshLine], server: Sshd) -> None:
    old = server.home / "python old"
    old.write_text("#!/bin/sh\necho 'widelane needs Python 3.9, this is 3.6' >&2\nexit 1\n")
    old.chmod(0o755)
    with pytest.raises(UnfitError, match=r"this is 3\.6"):
        Host("ssh.box", lines(python=str(old))).greet()


def test_a_line_that_breaks_in_the_middle_is_neither_failure_nor_absence(
    box: Host, server: Sshd, eventually: Eventually
) -> None:
    began, go, done = (server.home / name for name in ("began", "go", "done"))
    caught: list[LaneUnknownError] = []

    def call() -> None:
        try:
            box.run(["sh", "-c", WAITING], cwd="~")
        except LaneUnknownError as error:
            caught.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    eventually(began.exists)
    assert server.cut() >= 1
    thread.join(20)
    assert [error.code for error in caught] == ["connection_lost"]
    assert not isinstance(caught[0], UnreachedError | UnfitError)
    go.touch()
    eventually(done.exists)
    assert box.run(["true"]).returncode == 0
    assert server.said().count("Accepted publickey") == 2


def test_a_time_out_here_ends_nothing_there(
    lines: Callable[..., SshLine], server: Sshd, eventually: Eventually
) -> None:
    began, go, done = (server.home / name for name in ("began", "go", "done"))
    host = Host("ssh.box", lines())
    host.greet()
    asked = {"argv": ["sh", "-c", WAITING], "cwd": "~", "seconds": 60}
    with pytest.raises(LaneUnknownError) as told:
        host.call(Request(BASICS, "run", asked), silence=1.0)
    assert told.value.code == "connection_timeout"
    assert began.exists()
    go.touch()
    eventually(done.exists)


def test_a_connection_whose_process_was_killed_is_opened_anew(box: Host, server: Sshd, line: SshLine) -> None:
    box.greet()
    os.kill(_master(line), signal.SIGKILL)
    assert line.socket.exists()
    assert box.run(["echo", "again"]).stdout == "again\n"
    line.suspect()
    assert box.run(["echo", "again"]).stdout == "again\n"
    assert _master(line)


def test_a_connection_whose_process_hangs_is_left_behind(
    lines: Callable[..., SshLine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("widelane.transport.line._CHECK_SECONDS", 1.0)
    line = lines()
    host = Host("ssh.box", line)
    host.greet()
    master = _master(line)
    os.kill(master, signal.SIGSTOP)
    try:
        with pytest.raises(LaneUnknownError):
            host.call(Request(BASICS, "greet", {}), silence=1.0)
        assert host.run(["echo", "again"]).stdout == "again\n"
    finally:
        os.kill(master, signal.SIGKILL)


def test_another_process_uses_the_connection_that_is_open(lines: Callable[..., SshLine], server: Sshd) -> None:
    Host("ssh.box", lines()).greet()
    Host("ssh.box", lines()).greet()
    assert server.said().count("Accepted publickey") == 1


def test_a_folder_of_sockets_that_others_can_enter_is_not_used(box: Host, line: SshLine) -> None:
    line.socket.parent.mkdir(parents=True)
    line.socket.parent.chmod(0o755)
    with pytest.raises(ConfigError, match="only you"):
        box.greet()


def test_a_home_with_a_long_name_has_its_sockets_elsewhere(
    lines: Callable[..., SshLine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ("long" * 20) / ("name" * 10)
    line = lines(home=home)
    assert len(str(line.socket)) < 90
    assert line.socket != lines(home=home / "other").socket
    assert line.socket == lines(home=home).socket
    assert Host("ssh.box", line).run(["true"]).returncode == 0
    line.close()
    line.socket.with_suffix(".lock").unlink()
    line.socket.parent.rmdir()


@pytest.mark.parametrize("host", ["-oProxyCommand=touch x", "", "a b", "a\nb"])
def test_a_host_that_ssh_would_take_for_something_else_is_refused(tmp_path: Path, host: str) -> None:
    with pytest.raises(ConfigError):
        SshLine("ssh.box", host, tmp_path)


def _master(line: SshLine) -> int:
    """The process that holds the connection."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if str(line.socket) in words and words.startswith("ssh"):
                return int(entry.name)
    raise AssertionError("there is no master")
