"""One rank: do prefixes that look alike cost alike? Every WORLD_SIZE-th row of the 600 x 600 comparison.

Two prefixes look alike when they share three-letter pieces. Prints sums that a launcher adds over the ranks, so the
result doesn't depend on their number.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from score import PREFIX_CHARACTERS, sentences


def pieces(prefix: str) -> frozenset[str]:
    return frozenset(prefix[start : start + 3] for start in range(len(prefix) - 2))


def rows(costs: list[int], shapes: list[frozenset[str]], rank: int, ranks: int) -> dict[str, int]:
    gap_nearest = gap_all = compared = 0
    for row in range(rank, len(costs), ranks):
        others = [other for other in range(len(costs)) if other != row]
        nearest = max(others, key=lambda other: (len(shapes[row] & shapes[other]), -other))
        gap_nearest += abs(costs[row] - costs[nearest])
        gap_all += sum(abs(costs[row] - costs[other]) for other in others)
        compared += len(others)
    return {
        "rows": len(range(rank, len(costs), ranks)),
        "pairs": compared,
        "gap_nearest": gap_nearest,
        "gap_all": gap_all,
    }


def main() -> None:
    costs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["micro_bits"]
    shapes = [pieces(line[:PREFIX_CHARACTERS]) for line in sentences(Path(__file__).with_name("text.txt"))]
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    sys.stderr.write(f"rank {rank} of {ranks} on {os.environ['CUDA_VISIBLE_DEVICES']}\n")
    print(json.dumps(rows(costs, shapes, rank, ranks)))


if __name__ == "__main__":
    main()
