"""What ssh's own words mean."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from widelane.transport import Sort, judge_ssh
from widelane.transport.trouble import last_words, remedy

pytestmark = pytest.mark.slow

CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
  ssh-keygen -f "/u/.ssh/known_hosts" -R "box"
Host key for box has changed and you have requested strict checking.
Host key verification failed.
"""
UNKNOWN = """\
No ED25519 host key is known for [127.0.0.1]:22022 and you have requested strict checking.\r
Host key verification failed.\r
"""
CROWDED = """\
kex_exchange_identification: Connection closed by remote host\r
Connection closed by 127.0.0.1 port 22022\r
"""


@pytest.mark.parametrize(
    ("said", "sort", "code"),
    [
        ("ssh: connect to host 127.0.0.1 port 22: Connection refused\r\n", Sort.TRANSIENT, "connection_refused"),
        (
            "ssh: Could not resolve hostname box.invalid: Name or service not known\r\n",
            Sort.CONFIG,
            "host_name_unknown",
        ),
        ("ssh: Could not resolve hostname box: Temporary failure in name resolution\r\n", Sort.TRANSIENT, "no_route"),
        ("lab@127.0.0.1: Permission denied (publickey).\r\n", Sort.AUTH, "login_refused"),
        (UNKNOWN, Sort.AUTH, "host_key_unknown"),
        (CHANGED, Sort.AUTH, "host_key_changed"),
        (CROWDED, Sort.TRANSIENT, "connection_closed"),
        ("Connection timed out during banner exchange\r\n", Sort.TRANSIENT, "connection_timeout"),
        ("Timeout, server box not responding.\r\n", Sort.TRANSIENT, "connection_timeout"),
        ("client_loop: send disconnect: Broken pipe\r\n", Sort.TRANSIENT, "connection_closed"),
        (
            "gss_init_sec_context: Ticket expired\nlab@login: Permission denied (gssapi-with-mic,publickey).",
            Sort.AUTH,
            "ticket_expired",
        ),
        ("Received disconnect from 10.0.0.1: 2: Too many authentication failures", Sort.AUTH, "login_refused"),
        ("Bad owner or permissions on /u/.ssh/config", Sort.CONFIG, "ssh_config"),
        (
            "Unable to negotiate with 10.0.0.1 port 22: no matching cipher found.",
            Sort.CONFIG,
            "no_common_algorithm",
        ),
        ("", Sort.TRANSIENT, "connection_lost"),
        ("words that nobody knows", Sort.TRANSIENT, "connection_lost"),
    ],
)
def test_each_failure_of_ssh_has_its_kind(said: str, sort: Sort, code: str) -> None:
    trouble = judge_ssh(said)
    assert (trouble.sort, trouble.code) == (sort, code)
    assert trouble.message


def test_a_changed_key_is_forgotten_by_the_command_that_ssh_names() -> None:
    hint = remedy(judge_ssh(CHANGED), CHANGED, lambda: "ssh box")
    assert 'ssh-keygen -f "/u/.ssh/known_hosts" -R "box"' in hint
    assert "ssh box" in hint


def test_an_expired_ticket_asks_for_kinit() -> None:
    said = "Ticket expired"
    assert "kinit" in remedy(judge_ssh(said), said, lambda: "ssh box")


@given(st.text(max_size=2000))
def test_any_words_are_judged_and_shortened(said: str) -> None:
    assert len(judge_ssh(said).message) <= 500
    assert len(last_words(said)) <= 500
    assert "\n" not in last_words(said)
