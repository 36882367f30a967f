"""The command line of the runner file.

Exit codes: 0 finished.json is written; 1 something failed and the same command may be given again; 2 the arguments
or the spec can't be used; 3 another process holds the root folder.
"""

from __future__ import annotations

import argparse
import os
import socket
import sqlite3
import sys
import time
from pathlib import Path

from .attempt import locked
from .engine import EngineError
from .host import Host
from .loop import Stop
from .spec import SpecError
from .store import Store, StoreUrlError, open_store

DONE, AGAIN, UNUSABLE, BUSY = 0, 1, 2, 3
_PATIENCE = 60.0


def main(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser("runner.pyz")
    verbs = parser.add_subparsers(dest="verb", required=True)
    host = verbs.add_parser("host", help="run a spec to its end; may be given again at any time")
    host.add_argument("--store", required=True, help="URL of the store")
    host.add_argument("--spec", required=True, help="key of the spec in it")
    host.add_argument("--root", required=True, type=Path, help="folder for state, logs and the work folder")
    host.add_argument("--once", action="store_true", help="don't start over in this process after a failure")
    options = parser.parse_args(arguments)
    root = options.root.absolute()
    try:
        store = open_store(options.store)
        root.mkdir(parents=True, exist_ok=True)
    except (StoreUrlError, OSError) as error:
        return _say(UNUSABLE, str(error))
    try:
        with locked(root / "lock") as held:
            if held is None:
                holder = (root / "lock").read_text(errors="replace").strip()
                return _say(BUSY, f"{root} is held by {holder or 'another process'}")
            os.ftruncate(held, 0)
            os.write(held, f"pid {os.getpid()} on {socket.gethostname()}\n".encode())
            return _persist(store, options.spec, root, options.once)
    except OSError as error:
        return _say(AGAIN, str(error))


def _persist(store: Store, key: str, root: Path, once: bool) -> int:
    """Start over after a failure of disk or store, with growing pauses; every start adopts what runs."""
    stop = Stop()
    sys.setswitchinterval(0.001)  # the loop's thread must not wait long for those that publish
    pause = 0.5
    while True:
        begin = time.monotonic()
        try:
            trouble = Host(store, key, root, stop).run()
        except (SpecError, StoreUrlError) as error:
            return _say(UNUSABLE, f"{key}: {error}")
        except (OSError, sqlite3.Error, EngineError) as error:
            trouble = f"{type(error).__name__}: {error}"
        if not trouble:
            return DONE
        _say(AGAIN, trouble)
        if time.monotonic() - begin > _PATIENCE:
            pause = 0.5
        if once or pause > _PATIENCE / 4:
            return AGAIN
        time.sleep(pause)
        pause *= 2


def _say(code: int, text: str) -> int:
    sys.stderr.write(f"widelane: {text}\n")
    return code
