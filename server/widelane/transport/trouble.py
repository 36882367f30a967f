"""What it means when ssh, or a host, gives no answer: pure, from the exit code and what was said."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from widelane.errors import LaneUnknownError


class UnreachedError(LaneUnknownError):
    """There was no connection, so nothing happened on the host."""

    code = "unreachable"


class UnfitError(LaneUnknownError):
    """No waiting helps: ssh's own configuration, the host's name, or a host without Python 3.9."""

    code = "host_unfit"


class RefusedError(LaneUnknownError):
    """The host answered, and what it says is that it failed. `errno` is 0 when no system call did."""

    code = "host_failed"

    def __init__(self, lane: str, message: str, errno: int = 0) -> None:
        super().__init__(lane, message)
        self.errno = errno


class Sort(StrEnum):
    """What kind of trouble it is."""

    AUTH = "auth"
    CONFIG = "config"
    TRANSIENT = "transient"


@dataclass(frozen=True, slots=True)
class Trouble:
    """One trouble: its kind, a stable code, the line that says so."""

    sort: Sort
    code: str
    message: str


_Rule = tuple[re.Pattern[str], Sort, str]


def _rule(pattern: str, sort: Sort, code: str) -> _Rule:
    return re.compile(pattern, re.IGNORECASE), sort, code


# In order: a changed key comes with "verification failed", expired tickets with "permission denied".
_RULES: tuple[_Rule, ...] = (
    _rule(r"IDENTIFICATION HAS CHANGED|host key for \S+ has changed", Sort.AUTH, "host_key_changed"),
    _rule(r"REVOKED HOST KEY|host key \S* revoked", Sort.AUTH, "host_key_changed"),
    _rule(r"no \S+ host key is known|host key verification failed|authenticity of host", Sort.AUTH, "host_key_unknown"),
    _rule(r"ticket expired|no kerberos credentials|credentials cache|GSS failure", Sort.AUTH, "ticket_expired"),
    _rule(r"permission denied|too many authentication failures|authentication failed", Sort.AUTH, "login_refused"),
    _rule(r"no more authentication methods|signing failed|password (?:has )?expired", Sort.AUTH, "login_refused"),
    _rule(
        r"could not resolve hostname .*(?:not known|no address|nodename nor servname)", Sort.CONFIG, "host_name_unknown"
    ),
    _rule(r"bad configuration option|bad owner or permissions|terminating, \d+ bad", Sort.CONFIG, "ssh_config"),
    _rule(r"can't open user config file|no such identity|too long for unix domain socket", Sort.CONFIG, "ssh_config"),
    _rule(r"hostname contains invalid characters|missing argument|unsupported option", Sort.CONFIG, "ssh_config"),
    _rule(r"unable to negotiate|no matching (?:host key|key exchange|cipher|mac)", Sort.CONFIG, "no_common_algorithm"),
    _rule(r"connection refused", Sort.TRANSIENT, "connection_refused"),
    _rule(r"timed? ?out|timeout, server", Sort.TRANSIENT, "connection_timeout"),
    _rule(r"no route to host|network is unreachable|temporary failure in name", Sort.TRANSIENT, "no_route"),
    _rule(r"connection (?:closed|reset)|reset by peer|broken pipe|kex_exchange", Sort.TRANSIENT, "connection_closed"),
)
_NOISE = re.compile(r"^(?:Warning: Permanently added|\*\* WARNING|@+|debug\d:|\s*$)", re.IGNORECASE)
_REMOVE_KEY = re.compile(r"""ssh-keygen -f ["'][^"'\n]+["'] -R ["'][^"'\n]+["']""")
_SAID_LIMIT = 500


def judge_ssh(said: str) -> Trouble:
    """What ssh's own failure (exit code 255) is by what it said; silence is a lost connection."""
    for pattern, sort, code in _RULES:
        line = next((line for line in said.splitlines() if pattern.search(line)), None)
        if line is not None:
            return Trouble(sort, code, line.strip()[:_SAID_LIMIT])
    return Trouble(Sort.TRANSIENT, "connection_lost", last_words(said) or "ssh ended without a word")


def last_words(said: str) -> str:
    """The end of what was said, without decoration, on one line."""
    lines = [line.strip() for line in said.splitlines() if not _NOISE.match(line)]
    return "; ".join(lines[-3:])[-_SAID_LIMIT:]


def remedy(trouble: Trouble, said: str, login: Callable[[], str]) -> str:
    """The command to type, and what to look at before. `login` gives the command that opens a connection by hand."""
    if trouble.code == "host_key_changed":
        remove = _REMOVE_KEY.search(said)
        forget = remove.group(0) if remove is not None else "ssh-keygen -R HOST"
        return f"make sure that this host was set up anew, then `{forget}` and `{login()}`"
    if trouble.code == "host_key_unknown":
        return f"log in once by hand and compare the fingerprint: `{login()}`"
    if trouble.code == "ticket_expired":
        return "`kinit`, then ask again"
    return f"log in by hand, and the connection stays for later calls: `{login()}`"
