"""`python -m widelane.server [--sim SCENARIO|URL]`: the server on stdin and stdout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from widelane.server.app import serve_stdio
from widelane.tools.desk import Desk


def main(arguments: list[str]) -> int:
    """Serve until stdin closes; the exit code. `widelane serve` takes the same option."""
    if arguments and (arguments[0] != "--sim" or len(arguments) != 2):
        sys.stderr.write("usage: python -m widelane.server [--sim SCENARIO|URL]\n")
        return 2
    serve_stdio(Desk.open(Path.cwd(), os.environ, arguments[1] if arguments else None))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
