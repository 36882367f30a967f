"""What an outcome of ssh is, from the shapes that people paste."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widelane.lanes.ssh.classify import classify
from widelane.models.attempt import Outcome

UNKNOWN_KEY = "No ED25519 host key is known for [127.0.0.1]:22022 and you have requested strict checking.\r\n"
CROWDED = "kex_exchange_identification: Connection closed by remote host\r\nConnection closed by 127.0.0.1 port 22\r\n"
OOM = "Killed\nMemory cgroup out of memory: Killed process 4242 (python)\n"


@pytest.mark.parametrize(
    ("document", "outcome", "known"),
    [
        ({"rc": 255, "stderr": "ssh: connect to host box port 22: Connection refused\r\n"}, Outcome.TRANSIENT, True),
        (
            {"rc": 255, "stderr": "ssh: Could not resolve hostname no-such: Name or service not known\r\n"},
            Outcome.CONFIG,
            True,
        ),
        ({"rc": 255, "stderr": "lab@127.0.0.1: Permission denied (publickey).\r\n"}, Outcome.PERMISSION, True),
        ({"rc": 255, "stderr": UNKNOWN_KEY + "Host key verification failed.\r\n"}, Outcome.PERMISSION, True),
        ({"rc": 255, "stderr": CROWDED}, Outcome.TRANSIENT, True),
        ({"rc": 255, "stderr": "Connection timed out during banner exchange\r\n"}, Outcome.TRANSIENT, True),
        ({"rc": 127, "stderr": "bash: line 1: nosuchcmd: command not found\n"}, Outcome.WORKLOAD, True),
        ({"rc": 255, "stderr": ""}, Outcome.TRANSIENT, False),
        ({"rc": 255, "stderr": "Connection to box closed by remote host.\r\n"}, Outcome.TRANSIENT, False),
        ({"rc": 255, "stderr": "Timeout, server box not responding.\r\n"}, Outcome.TRANSIENT, False),
        ({"exc_type": "asyncssh.misc.PermissionDenied", "message": "denied"}, Outcome.PERMISSION, True),
        ({"exc_type": "asyncssh.misc.HostKeyNotVerifiable", "message": "not trusted"}, Outcome.PERMISSION, True),
        ({"exc_type": "asyncssh.misc.ChannelOpenError", "message": "open failed"}, Outcome.TRANSIENT, True),
        ({"exc_type": "SomethingElse", "message": "?"}, Outcome.UNKNOWN, True),
        ({"exit_status": None, "exit_signal": None, "returncode": None}, Outcome.TRANSIENT, False),
        (
            {"exit_status": -1, "exit_signal": ["KILL", False, "", ""], "returncode": -9},
            Outcome.WORKLOAD,
            True,
        ),
        ({"job_rc": 137, "log_tail": OOM}, Outcome.WORKLOAD, True),
        ({"job_rc": None, "pid_alive": False}, Outcome.WORKLOAD, True),
        ({"job_rc": None, "pid_alive": True}, Outcome.UNKNOWN, True),
        ({}, Outcome.UNKNOWN, True),
    ],
)
def test_each_outcome_has_its_class(document: dict[str, Any], outcome: Outcome, known: bool) -> None:
    failure = classify(document)
    assert (failure.outcome, failure.outcome_known) == (outcome, known)
    assert failure.code
    assert failure.message


def test_memory_is_told_by_the_log_and_never_by_a_number_alone() -> None:
    assert classify({"job_rc": 137, "log_tail": OOM}).code == "out_of_memory"
    assert classify({"job_rc": 137, "log_tail": "Killed"}).code == "exit_137"


@given(st.text(), st.integers(-300, 300))
def test_any_words_of_ssh_are_judged(said: str, code: int) -> None:
    failure = classify({"rc": code, "stderr": said})
    assert len(failure.message) <= 500
    assert (failure.outcome is Outcome.WORKLOAD) == (code != 255)
