"""`python -m widelane.dispatcher --home DIR`: the supervisor of a home, in the foreground."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from widelane.dispatcher.supervisor import supervise


def main() -> int:
    """Run the supervisor; 0 when it left idle, 1 when another one is at work."""
    parser = argparse.ArgumentParser(prog="widelane.dispatcher")
    parser.add_argument("--home", type=Path, required=True)
    return supervise(parser.parse_args().home)


if __name__ == "__main__":
    sys.exit(main())
