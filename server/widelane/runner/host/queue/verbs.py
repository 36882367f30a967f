"""`runner.pyz queue VERB`: JSON in, JSON out.

Exit codes: 0 done; 1 may pass; 2 bad input; 3 unknown run, or the root is held.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, Callable

from . import client, status
from .serve import serve
from .spec import QueueError
from .wait import wait

DONE, AGAIN, UNUSABLE, UNKNOWN = 0, 1, 2, 3
_MISSING = ("no_run", "no_job", "no_log")


def main(arguments: list[str]) -> int:
    """Run a verb; returns the exit code."""
    parser = argparse.ArgumentParser("runner.pyz queue")
    parser.add_argument("verb", choices=["serve", "ensure", *_VERBS])
    parser.add_argument("--root", required=True, type=Path)
    parser.add_argument("--run", default="")
    parser.add_argument("--job")
    parser.add_argument("--number", type=int)
    parser.add_argument("--since", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--until", choices=["change", "done", "stuck"], default="done")
    parser.add_argument("--brief", action="store_true")
    parser.add_argument("--detach", action="store_true")
    options = parser.parse_args(arguments)
    options.root = options.root.absolute()
    try:
        if options.verb == "serve":
            return _serve(options)
        if options.verb == "ensure":
            answer: Any = {"started": client.ensure(options.root, runner())}
        else:
            answer = _VERBS[options.verb](options)
    except QueueError as error:
        sys.stdout.write(json.dumps({"code": error.code, "message": str(error)}) + "\n")
        return UNKNOWN if error.code in _MISSING else AGAIN if error.code == "no_scheduler" else UNUSABLE
    except (OSError, sqlite3.Error) as error:
        sys.stdout.write(json.dumps({"code": "host", "message": f"{type(error).__name__}: {error}"}) + "\n")
        return AGAIN
    sys.stdout.write(json.dumps(answer) + "\n")
    return DONE


def runner() -> Path:
    """The runner file that this is."""
    return Path(sys.argv[0]).resolve()


def _serve(options: argparse.Namespace) -> int:
    """With `--detach` return once the scheduler holds the lock, or has ended."""
    if options.detach:
        child = os.fork()
        if child:
            while not client.is_served(options.root):
                ended, code = os.waitpid(child, os.WNOHANG)
                if ended:
                    return os.waitstatus_to_exitcode(code)
                time.sleep(0.005)
            return DONE
    return serve(options.root, runner())


def _given() -> Any:
    try:
        return json.loads(sys.stdin.buffer.read())
    except ValueError as error:
        raise QueueError("bad_spec", f"stdin isn't JSON: {error}") from error


_VERBS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "submit": lambda given: client.submit(given.root, _given(), runner()),
    "command": lambda given: client.command(given.root, _given(), runner()),
    "status": lambda given: status.status(given.root, given.run, not given.brief),
    "runs": lambda given: status.runs(given.root),
    "events": lambda given: status.events(given.root, given.run, given.since),
    "wait": lambda given: wait(given.root, given.run, given.since, given.seconds, given.until),
    "attempts": lambda given: status.attempts(given.root, given.run, given.job),
    "spec": lambda given: status.spec(given.root, given.run),
    "log": lambda given: {"path": str(status.log_path(given.root, given.run, given.job or "", given.number))},
}
