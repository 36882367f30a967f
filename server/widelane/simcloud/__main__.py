"""`python -m widelane.simcloud --home DIR --scenario FILE [--port 0]`: a detached server on the state in DIR.

Returns once it listens (DIR/endpoint.json has its address), also when it was running already. Exit 2: the
scenario or the folder can't be used; 1: it did not start. What the server has to say goes to DIR/server.log.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NoReturn

from widelane.errors import BusyError, InputError, WidelaneError
from widelane.simcloud.client import awaited
from widelane.simcloud.hosting import IDLE_SECONDS, Options
from widelane.simcloud.server import run

_READY = b"ready"


def main(argv: list[str]) -> int:
    """Start the server and leave it; the exit code."""
    given = _parser().parse_args(argv)
    folder, scenario = given.home.absolute(), given.scenario.absolute()
    options = Options(given.port, given.idle_seconds, given.isolation)
    told, tell = os.pipe()
    if os.fork() == 0:
        os.close(told)
        _serve(scenario, folder, options, tell)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        answer = pipe.read()
    if answer == _READY:
        return 0
    code, _, message = answer.decode(errors="replace").partition(" ")
    if code == BusyError.code:
        return 0 if awaited(folder) else _fail(1, message)
    return _fail(2 if code == InputError.code else 1, message or f"see {folder / 'server.log'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m widelane.simcloud", description=__doc__)
    parser.add_argument("--home", type=Path, required=True, help="folder of this cloud's state")
    parser.add_argument("--scenario", type=Path, required=True, help="scenario file (YAML)")
    parser.add_argument("--port", type=int, default=0, help="0: the one it had before, else any free one")
    parser.add_argument("--idle-seconds", type=float, default=IDLE_SECONDS, help="leave after so long without a call")
    parser.add_argument("--isolation", choices=("auto", "namespace", "reaper"), default="auto", help="kind of VM")
    return parser


def _serve(scenario: Path, folder: Path, options: Options, tell: int) -> NoReturn:
    """The detached half: tells the parent how the start went, then serves to the end."""
    try:
        _detach(folder, tell)
        run(scenario, folder, options, lambda _endpoint: _say(tell, _READY))
    except WidelaneError as error:
        kind = BusyError if isinstance(error, BusyError) else InputError
        _say(tell, f"{kind.code} {error}".encode())
        sys.exit(1)
    sys.exit(0)


def _detach(folder: Path, tell: int) -> None:
    os.setsid()
    folder.mkdir(parents=True, exist_ok=True)
    log = os.open(folder / "server.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.set_inheritable(tell, False)


def _say(tell: int, answer: bytes) -> None:
    os.write(tell, answer)
    os.close(tell)


def _fail(code: int, message: str) -> int:
    sys.stderr.write(message + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
