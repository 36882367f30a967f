"""One unit: points of a line with noise, the same ones for the same seed."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

POINTS = 200


def main() -> None:
    """Write the points of one seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    dice = random.Random(asked.seed)
    points = [[x, 3 * x + 2 + dice.gauss(0, 1)] for x in (dice.random() for _ in range(POINTS))]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(points) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
