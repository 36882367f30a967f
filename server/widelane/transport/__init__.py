"""Hosts that are reached by the system's ssh, and asked in Python: nothing untrusted ever stands in a shell's text.

program   modules of ours that are sent to a host
wire      one call over a process's stdin and stdout
line      the command, and the one connection that calls to a host share
trouble   what it means when there is no answer
host      calls, commands and files, with the errors of lanes
remote    what runs there
"""

from widelane.transport.host import Host, Ran
from widelane.transport.line import HereLine, PassingLine, SshLine
from widelane.transport.program import Program
from widelane.transport.trouble import RefusedError, Sort, Trouble, UnfitError, UnreachedError, judge_ssh
from widelane.transport.wire import Received, Reply, Request

__all__ = [
    "HereLine",
    "Host",
    "PassingLine",
    "Program",
    "Ran",
    "Received",
    "RefusedError",
    "Reply",
    "Request",
    "Sort",
    "SshLine",
    "Trouble",
    "UnfitError",
    "UnreachedError",
    "judge_ssh",
]
