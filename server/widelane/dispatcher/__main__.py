"""`python -m widelane.dispatcher --home DIR [--detach]`: the supervisor of a home."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path


def main() -> int:
    """Run the supervisor; 0 when it left idle, 1 when another one is at work."""
    parser = argparse.ArgumentParser(prog="widelane.dispatcher")
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--detach", action="store_true")
    given = parser.parse_args()
    if given.detach:
        # Before anything heavy is imported: the caller waits for this process, not for its child.
        if os.fork():
            os._exit(0)
        os.setsid()
    from widelane.dispatcher.supervisor import supervise  # noqa: PLC0415 - after the fork, see above

    return supervise(given.home)


if __name__ == "__main__":
    sys.exit(main())
