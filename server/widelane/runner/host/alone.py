"""`runner.pyz attempt --folder DIR`: one prepared attempt in the foreground, under the supervisor that all have."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from .attempt import Folder, read_record
from .supervise import WATCHED, supervise

NOT_DONE = 120
"""Exit code of an attempt whose process ended well and whose verdict isn't success."""
NEVER_RAN = 121


def main(arguments: list[str]) -> int:
    """Run it; returns the process's exit code, 128 and the signal, or one of the two above."""
    parser = argparse.ArgumentParser("runner.pyz attempt")
    parser.add_argument("--folder", required=True, type=Path)
    folder = Folder(parser.parse_args(arguments).folder.absolute())
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    supervise(folder)
    record = read_record(folder.exit)
    if record is None or record.get("spawn_error"):
        sys.stderr.write(f"widelane: {folder.path}: {record['spawn_error'] if record else 'it was not started'}\n")
        return NEVER_RAN
    if record["signal"] is not None:
        return 128 + int(record["signal"])
    if record.get("verdict", {}).get("reason") and not record["exit_code"]:
        return NOT_DONE
    return int(record["exit_code"])
